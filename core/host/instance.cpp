#include "core/host/instance.hpp"

#include <cstddef>
#include <cstring>

#include "base/files.hpp"
#include "core/host/abi_copy.hpp"
#include "core/host/current_call.hpp"
#include "core/host/library.hpp"

namespace gantry::core {

namespace {

constexpr auto ending_time = std::chrono::seconds(2);

std::string text_of(std::chrono::milliseconds time) { return std::to_string(time.count()) + " ms"; }

} // namespace

result<std::unique_ptr<instance>> instance::make(const node_context& node, plugin_settings settings, chosen_plugin chosen,
                                                 std::string library, std::uint32_t index) {
    std::unique_ptr<instance> made(new instance(node, std::move(settings), std::move(chosen), std::move(library)));
    GANTRY_CHECK(made->open(index));
    return made;
}

instance::instance(const node_context& node, plugin_settings settings, chosen_plugin chosen, std::string library)
    : node_(node), settings_(std::move(settings)), chosen_(std::move(chosen)), sha256_(chosen_.file ? chosen_.file->sha256 : ""), version_(chosen_.plugin.version),
      origin_(chosen_.file ? chosen_.file->path : "built-in plugin " + chosen_.plugin.name), interned_name_(interned(settings_.name.c_str())),
      concurrency_(settings_.limits.max_concurrency != 0 ? settings_.limits.max_concurrency : chosen_.plugin.max_concurrency), log_(settings_.name, node.node.log_level), store_(node.node.state_root() + "/kv/" + settings_.name), library_(std::move(library)), expected_(chosen_.plugin),
      plugin_index_(chosen_.index), main_(chosen_.builtin) {}

result<void> instance::open(std::uint32_t index) {
    GANTRY_TRY(lane_, lane::start(settings_.name));
    ops_ = std::make_unique<op_router>(
        op_router::settings{.instance = interned_name_,
                            .index = index,
                            .max_concurrency = concurrency_,
                            .grace = settings_.limits.grace,
                            .misbehaved = [this](const char* kind, const std::string& what) { misbehaved(kind, what); },
                            .after_call = [this](const char* what) { after_call(what); }},
        *lane_, *node_.alarms, *node_.journal);
    workers_ = std::make_unique<executor>(settings_.name, static_cast<std::size_t>(concurrency_));
    helpers_ = std::make_unique<core::helpers>(settings_.name, *lane_, *node_.alarms, node_.groups);
    events_ = std::make_shared<event_link>(settings_.name, *node_.loop, *lane_, node_.events);
    services_ = std::make_unique<host_services>(*this);
    return {};
}

instance::~instance() = default;

bool instance::end(clock::time_point deadline) {
    lane_->post([this, deadline] { stop(deadline); }); // without effect if it has been stopped
    return lane_->finish(deadline) && workers_->finish(deadline);
}

// ---- the plugin's life, on the lane

/// True when the plugin's table reaches the pointer at `offset` and it is set.
bool instance::has(std::size_t offset) const {
    void* pointer = nullptr;
    if (plugin_->struct_size < offset + sizeof pointer) return false;
    std::memcpy(&pointer, reinterpret_cast<const char*>(plugin_) + offset, sizeof pointer);
    return pointer != nullptr;
}

result<gantry_plugin_main_fn> instance::library() {
    if (main_) return main_;
    result<gantry_plugin_main_fn> loaded = error{};
    const auto thrown = enter("load", 0, [&] { loaded = load_library(library_, origin_); });
    if (thrown) return error{.message = origin_ + " cannot be loaded: a constructor of it threw: " + *thrown};
    if (!loaded) return loaded;
    for (const auto& [begin, end] : code_around(reinterpret_cast<const void*>(*loaded))) attribute_code(begin, end, interned_name_);
    main_ = *loaded;
    return main_;
}

result<void> instance::refresh_file() {
    if (main_) return {};
    GANTRY_TRY(auto file, open_plugin_file(origin_));
    if (file.sha256 == sha256()) return {};
    if (!settings_.sha256.empty() && settings_.sha256 != file.sha256)
        return error{.code = code::permission, .message = name() + ": " + origin_ + " has sha256 " + file.sha256 + ", the configuration pins " + settings_.sha256};
    for (std::uint32_t i = 0; i < file.plugins.size(); ++i) {
        const auto& fresh = file.plugins[i];
        const auto& known = chosen_.plugin;
        if (fresh.id != known.id) continue;
        if (fresh.capabilities != known.capabilities || fresh.peers != known.peers || fresh.operations != known.operations ||
            fresh.config != known.config)
            break;
        GANTRY_TRY(library_, install_verified(file, fresh.id, node_.library_dir));
        expected_ = fresh;
        plugin_index_ = i;
        const std::lock_guard lock(mutex_);
        sha256_ = file.sha256;
        version_ = fresh.version;
        return {};
    }
    return error{.code = code::invalid, .message = name() + ": " + origin_ + " was replaced by a plugin with other capabilities or configuration: restart the node to use it"};
}

std::string instance::version() const {
    const std::lock_guard lock(mutex_);
    return version_;
}

std::string instance::sha256() const {
    const std::lock_guard lock(mutex_);
    return sha256_;
}

result<void> instance::load_and_init() {
    if (plugin_) stop(clock::now() + ending_time); // it came up after it had been given up
    if (!hygiene_) hygiene_ = std::make_unique<hygiene_check>();
    GANTRY_CHECK(base::make_dirs(instance_state_dir(*this), 0700));
    GANTRY_CHECK(base::make_dirs(instance_run_dir(*this), 0700));
    GANTRY_CHECK(node_.crashes->mark_loading(name(), chosen_.plugin.id, sha256_));
    auto outcome = [&]() -> result<void> {
        GANTRY_TRY(const auto main, library());
        result<const gantry_plugin_entry*> entry = error{};
        const auto thrown = enter("load", 0, [&] { entry = check_entry(main, origin_, expected_, plugin_index_); });
        if (thrown) return error{.message = origin_ + ": gantry_plugin_main threw: " + *thrown};
        if (!entry) return std::move(entry).error();
        return create_and_init(**entry);
    }();
    node_.crashes->clear_loading();
    report(hygiene_->all(), "init");
    if (outcome || !plugin_) return outcome;
    if (initialised_) {
        stop(clock::now() + ending_time);
    } else if (revoke_services(clock::now() + ending_time)) {
        destroy();
    }
    return outcome;
}

result<void> instance::create_and_init(const gantry_plugin_entry& entry) {
    metrics_.reset();
    const auto created = enter_checked("create", [&](gantry_error_sink* sink) {
        plugin_ = entry.create(plugin_index_, services_->host(), sink);
        return plugin_ ? GANTRY_OK : GANTRY_INTERNAL;
    });
    if (!created) {
        plugin_ = nullptr;
        return created;
    }
    if (!has(offsetof(gantry_plugin, init)) || !has(offsetof(gantry_plugin, capability)) || !has(offsetof(gantry_plugin, destroy))) {
        plugin_ = nullptr;
        return error{.code = code::invalid, .message = origin_ + ": its instance lacks init, capability or destroy; the plugin must be rebuilt"};
    }
    const auto ready = enter_checked("init", [&](gantry_error_sink* sink) { return plugin_->init(plugin_->self, sink); });
    metrics_.freeze();
    if (!ready) return ready;
    initialised_ = true;
    return take_tables();
}

/// A call that returns a status and sets an error: what the plugin forgot to say is said for it, and counted.
result<void> instance::enter_checked(const char* what, const std::function<gantry_status(gantry_error_sink*)>& code) {
    error_catcher errors(name() + ": " + what);
    gantry_status status = GANTRY_INTERNAL;
    if (const auto thrown = enter(what, 0, [&] { status = code(errors.sink()); }))
        return error{.message = name() + ": " + what + " threw: " + *thrown};
    auto outcome = errors.outcome(status);
    if (!outcome && errors.silent()) misbehaved("error_without_message", outcome.error().message);
    return outcome;
}

result<void> instance::take_tables() {
    std::map<std::string, const void*, std::less<>> tables;
    for (const auto& id : chosen_.plugin.capabilities) {
        const void* table = nullptr;
        enter("capability", 0, [&] { table = plugin_->capability(plugin_->self, borrow(id)); });
        std::uint32_t size = 0;
        if (table) std::memcpy(&size, table, sizeof size);
        if (size < 2 * sizeof(std::uint32_t))
            return error{.code = code::invalid, .message = origin_ + ": its descriptor offers " + id + ", its code has no table for it; the plugin must be rebuilt"};
        tables.emplace(id, table);
    }
    const std::lock_guard lock(mutex_);
    tables_ = std::move(tables);
    self_ = plugin_->self;
    return {};
}

result<void> instance::activate() {
    if (has(offsetof(gantry_plugin, activate))) {
        auto outcome = enter_checked("activate", [&](gantry_error_sink* sink) { return plugin_->activate(plugin_->self, sink); });
        report(hygiene_->all(), "activate");
        if (!outcome) {
            stop(clock::now() + ending_time);
            return outcome;
        }
    }
    return {};
}

void instance::drain(clock::time_point deadline) {
    if (!plugin_ || !has(offsetof(gantry_plugin, drain))) return;
    enter("drain", 0, [&] { plugin_->drain(plugin_->self, deadline.time_since_epoch().count()); });
}

void instance::stop(clock::time_point deadline) {
    if (!plugin_) return;
    ops_->fail_all(name() + " is stopped");
    if (has(offsetof(gantry_plugin, stop))) enter("stop", 0, [&] { plugin_->stop(plugin_->self); });
    if (revoke_services(deadline)) destroy();
    else plugin_ = nullptr; // its memory is in use: it stays
}

/// Ends what the plugin has registered with the host; false when code of it still runs on a worker.
bool instance::revoke_services(clock::time_point deadline) {
    ++life_;
    initialised_ = false;
    events_->unsubscribe_all();
    helpers_->stop(deadline);
    lane_->revoke();
    const bool idle = workers_->finish(deadline);
    if (!idle) misbehaved("running_after_stop", name() + ": its worker tasks run on after stop()");
    workers_->reopen(); // for another life; this one is over, whoever still calls
    return idle;
}

void instance::destroy() {
    enter("destroy", 0, [&] { plugin_->destroy(plugin_->self); });
    plugin_ = nullptr;
    const std::lock_guard lock(mutex_);
    self_ = nullptr;
    tables_.clear();
}

// ---- faults

void instance::after_call(const char* what) {
    if (hygiene_) report(hygiene_->sampled(clock::now()), what);
    if (const auto forks = forks_of_this_thread(); forks != forks_seen_) {
        forks_seen_ = forks;
        misbehaved("fork", name() + ": " + what + " called fork(), which is not allowed in a plugin: use gantry.exec/1");
    }
}

void instance::post(const char* what, std::uint64_t op, std::function<void()> code) {
    lane_->post([this, what, op, life = life_.load(), code = std::move(code)] {
        if (life == life_.load()) enter(what, op, code);
    });
}

void instance::enter_worker(std::uint64_t op, const std::function<void()>& code) {
    static thread_local std::unique_ptr<hygiene_check> hygiene;
    if (!hygiene) hygiene = std::make_unique<hygiene_check>();
    std::optional<std::string> thrown;
    {
        const call_scope scope(interned_name_, "worker", op);
        thrown = catching(code);
    }
    if (thrown) report_exception("worker", *thrown);
    report(hygiene->sampled(clock::now()), "worker");
}

void instance::report_exception(const char* what, const std::string& thrown) {
    misbehaved("exception", name() + ": an exception left " + what + ": " + thrown);
}

void instance::report(const std::vector<hygiene_fault>& faults, const char* what) {
    for (const auto& fault : faults) misbehaved(fault.kind, name() + ": " + what + " " + fault.what);
}

void instance::misbehaved(const char* kind, const std::string& what) {
    std::optional<std::uint64_t> write;
    {
        const std::lock_guard lock(mutex_);
        ++faults_[kind];
        write = fault_gate_.pass(kind, kind, clock::now()); // by kind: the texts hold numbers that differ each time
    }
    if (!write) return;
    const auto kept_back = std::to_string(*write);
    std::vector<log::field> fields{{"plugin", name()}, {"fault", kind}};
    if (*write != 0) fields.push_back({"kept_back", kept_back});
    log::write(log_level::warn, "plugin misbehaves: " + what, fields);
}

std::map<std::string, std::uint64_t> instance::faults() const {
    const std::lock_guard lock(mutex_);
    return faults_;
}

void instance::on_hang(std::function<void()> fn) {
    const std::lock_guard lock(mutex_);
    on_hang_ = std::move(fn);
}

void instance::watch(clock::time_point now) {
    const bool stalled = lane_->busy_for(now) >= settings_.limits.lane_stall;
    if (stalled == (state() == plugin_state::hung)) return;
    if (stalled) {
        const std::string what = lane_->label();
        const auto reason = name() + ": " + what + " has not returned for " + text_of(settings_.limits.lane_stall) + ", its lane hangs";
        std::function<void()> waiter;
        {
            const std::lock_guard lock(mutex_);
            state_before_hang_ = state_;
            waiter = std::exchange(on_hang_, nullptr);
        }
        set_state(plugin_state::hung, reason);
        misbehaved("lane_stall", reason);
        ops_->fail_all(reason);
        if (waiter) waiter();
        return;
    }
    log::warn("plugin is back: its lane hung and goes on", {{"plugin", name()}});
    plugin_state before;
    {
        const std::lock_guard lock(mutex_);
        before = state_before_hang_;
    }
    if (before == plugin_state::active) set_state(plugin_state::active);
    else set_state(plugin_state::failed, name() + " hung while it was " + std::string(to_string(before)) + ": run `gantry plugin enable " + name() + "`");
}

plugin_state instance::state() const {
    const std::lock_guard lock(mutex_);
    return state_;
}

std::string instance::reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
}

void instance::set_state(plugin_state state, std::string reason) {
    std::map<std::string, const void*, std::less<>> tables;
    void* self = nullptr;
    {
        const std::lock_guard lock(mutex_);
        state_ = state;
        reason_ = reason;
        tables = tables_;
        self = self_;
    }
    if (state == plugin_state::active) return ops_->open(self, std::move(tables));
    if (reason.empty()) reason = name() + " is " + std::string(to_string(state));
    ops_->close(std::move(reason));
}

std::uint32_t instance::flags(std::string_view capability) const {
    const std::lock_guard lock(mutex_);
    const auto table = tables_.find(capability);
    if (table == tables_.end()) return 0;
    std::uint32_t word = 0;
    std::memcpy(&word, static_cast<const char*>(table->second) + sizeof(std::uint32_t), sizeof word);
    return word;
}

} // namespace gantry::core
