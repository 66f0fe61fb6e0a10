#include "plan.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <boost/json.hpp>

namespace largest_first {

namespace json = boost::json;
using gantry::code;
using gantry::error;
using gantry::result;

result<limits> read_limits(std::string_view text) {
    limits out;
    try {
        const auto value = json::parse(json::string_view(text.data(), text.size()));
        const auto& config = value.as_object();
        if (const auto* high = config.if_contains("highPercent")) out.high_percent = high->to_number<int>();
        if (const auto* low = config.if_contains("lowPercent")) out.low_percent = low->to_number<int>();
    } catch (const std::exception& e) {
        return error{.code = code::invalid, .message = std::string("config of largest-first: ") + e.what()};
    }
    if (out.low_percent >= out.high_percent)
        return error{.code = code::invalid,
                     .message = "config of largest-first: lowPercent (" + std::to_string(out.low_percent) +
                                ") must be below highPercent (" + std::to_string(out.high_percent) + ")",
                     .detail = R"({"field": "lowPercent"})"};
    return out;
}

result<std::string> plan(std::string_view request, const limits& with) {
    struct image {
        std::string id;
        std::int64_t bytes;
    };
    std::vector<image> images;
    std::int64_t target = 0;
    try {
        const auto value = json::parse(json::string_view(request.data(), request.size()));
        const auto& fs = value.at("fs");
        const auto capacity = fs.at("capacityBytes").to_number<std::int64_t>();
        const auto used = capacity - fs.at("availableBytes").to_number<std::int64_t>();
        if (used > capacity / 100 * with.high_percent) target = used - capacity / 100 * with.low_percent;
        for (const auto& one : value.at("images").as_array())
            images.push_back({one.at("id").as_string().c_str(), one.at("sizeBytes").to_number<std::int64_t>()});
    } catch (const std::exception& e) {
        return error{.code = code::invalid, .message = std::string("rank request: ") + e.what()};
    }
    std::stable_sort(images.begin(), images.end(), [](const image& a, const image& b) { return a.bytes > b.bytes; });

    json::array remove;
    if (target > 0) {
        for (const auto& one : images)
            remove.push_back({{"id", one.id}, {"reason", "the largest unused image left: " + std::to_string(one.bytes) + " bytes"}});
    }
    return json::serialize(json::object{{"remove", std::move(remove)}, {"targetBytes", target}});
}

} // namespace largest_first
