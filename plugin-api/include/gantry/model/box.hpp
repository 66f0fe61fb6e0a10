// box<T>: an optional member on the heap, with value semantics. Kubernetes objects are mostly absent fields; a box costs
// one pointer for each of them, where std::optional would cost the whole struct.
#pragma once

#include <memory>
#include <utility>

namespace gantry::model {

template <class T>
class box {
public:
    box() = default;
    box(T value) : value_(std::make_unique<T>(std::move(value))) {}
    box(const box& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
    box(box&&) noexcept = default;
    box& operator=(const box& other) {
        if (this != &other) value_ = other.value_ ? std::make_unique<T>(*other.value_) : nullptr;
        return *this;
    }
    box& operator=(box&&) noexcept = default;
    ~box() = default;

    explicit operator bool() const noexcept { return value_ != nullptr; }
    T& operator*() { return *value_; }
    const T& operator*() const { return *value_; }
    T* operator->() { return value_.get(); }
    const T* operator->() const { return value_.get(); }
    const T* get() const noexcept { return value_.get(); }

    /// The value, made default if there is none.
    T& ensure() {
        if (!value_) value_ = std::make_unique<T>();
        return *value_;
    }
    void reset() noexcept { value_.reset(); }

    friend bool operator==(const box& a, const box& b) {
        return (!a && !b) || (a && b && *a.value_ == *b.value_);
    }

private:
    std::unique_ptr<T> value_;
};

/// A scalar that is written even when it is zero, as the API does for a few status fields (exitCode, restartCount).
template <class T>
struct always {
    T value{};

    always() = default;
    always(T v) : value(std::move(v)) {}
    operator const T&() const { return value; }
    friend bool operator==(const always& a, const always& b) { return a.value == b.value; }
};

} // namespace gantry::model
