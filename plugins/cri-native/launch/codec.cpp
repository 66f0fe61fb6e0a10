#include "plugins/cri-native/launch/codec.hpp"

#include <linux/filter.h>

#include <algorithm>

#include "base/invalid.hpp"
#include "plugins/cri-native/launch/wire.hpp"

namespace gantry::cri_native::launch {

namespace {

using wire::tag;

/// Appends records and remembers the first text that cannot be one.
class plan_writer {
public:
    explicit plan_writer(wire::plan_kind kind) {
        const wire::plan_header head{wire::magic, wire::abi, static_cast<std::uint16_t>(kind), 0};
        bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
    }

    plan_writer& begin(tag t) {
        writer_.begin(t);
        return *this;
    }
    plan_writer& number(std::uint32_t v) {
        writer_.u32(v);
        return *this;
    }
    plan_writer& wide(std::uint64_t v) {
        writer_.u64(v);
        return *this;
    }
    plan_writer& text(std::string_view what, std::string_view value) {
        if (value.find('\0') != std::string_view::npos && bad_.empty()) bad_ = std::string(what) + " holds a NUL byte";
        writer_.text(value.data(), value.size());
        return *this;
    }
    plan_writer& path(std::string_view what, std::string_view value) {
        if ((value.empty() || value.front() != '/') && bad_.empty())
            bad_ = std::string(what) + " is not an absolute path: \"" + std::string(value) + "\"";
        return text(what, value);
    }
    plan_writer& raw(const void* data, std::size_t size) {
        writer_.text(static_cast<const char*>(data), size);
        return *this;
    }
    void end() { writer_.end(); }

    result<std::string> finish() && {
        if (!bad_.empty()) return invalid(std::move(bad_));
        const auto length = static_cast<std::uint32_t>(bytes_.size());
        bytes_.replace(offsetof(wire::plan_header, length), sizeof length, reinterpret_cast<const char*>(&length),
                       sizeof length);
        return std::move(bytes_);
    }

private:
    std::string bytes_;
    wire::writer<std::string> writer_{bytes_};
    std::string bad_;
};

std::uint32_t bit(bool set, std::uint32_t flag) { return set ? flag : 0; }

void add_process(plan_writer& w, const process_plan& p) {
    constexpr std::string_view path_name = "PATH=";
    std::string_view search;
    bool has_path = false;
    for (const auto& argument : p.argv) w.begin(tag::argument).text("argv", argument).end();
    for (const auto& variable : p.env) {
        w.begin(tag::environment).text("the environment", variable).end();
        if (!std::string_view(variable).starts_with(path_name)) continue;
        search = std::string_view(variable).substr(path_name.size());
        has_path = true;
    }
    if (!has_path) {
        search = default_path;
        w.begin(tag::environment).text("PATH", std::string(path_name) + std::string(default_path)).end();
    }
    for (const gid_t group : p.groups) w.begin(tag::group).number(group).end();
    for (const auto& limit : p.rlimits)
        w.begin(tag::rlimit).number(static_cast<std::uint32_t>(limit.resource)).wide(limit.soft).wide(limit.hard).end();
    if (!p.seccomp.empty()) w.begin(tag::seccomp).raw(p.seccomp.data(), p.seccomp.size()).end();
    const std::uint32_t flags = bit(p.no_new_privs, wire::process_no_new_privs) | bit(p.tty, wire::process_tty) |
                                bit(p.oom_score_adj.has_value(), wire::process_oom_score_adj);
    w.begin(tag::process)
        .path("the working directory", p.cwd)
        .number(p.uid)
        .number(p.gid)
        .number(p.umask)
        .wide(p.capabilities)
        .number(flags)
        .number(static_cast<std::uint32_t>(p.oom_score_adj.value_or(0)))
        .number(p.tty_columns)
        .number(p.tty_rows)
        .text("PATH", search)
        .end();
}

result<void> check_process(const process_plan& p) {
    if (p.argv.empty()) return invalid("no command specified");
    if (p.seccomp.size() % sizeof(sock_filter) != 0)
        return invalid("the seccomp filter is not a whole number of instructions");
    if (p.seccomp.size() / sizeof(sock_filter) > BPF_MAXINSNS)
        return invalid("the seccomp filter has " + std::to_string(p.seccomp.size() / sizeof(sock_filter)) +
                       " instructions, the kernel takes " + std::to_string(BPF_MAXINSNS));
    return {};
}

std::size_t depth_of(std::string_view path) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < path.size(); ++i) depth += path[i] != '/' && (i == 0 || path[i - 1] == '/');
    return depth;
}

// Parents first (3.2 step 6).
std::vector<const mount_plan*> by_depth(const std::vector<mount_plan>& mounts) {
    std::vector<const mount_plan*> sorted;
    for (const auto& m : mounts) sorted.push_back(&m);
    std::stable_sort(sorted.begin(), sorted.end(), [](const mount_plan* a, const mount_plan* b) {
        return depth_of(a->target) < depth_of(b->target);
    });
    return sorted;
}

void add_mounts(plan_writer& w, const container_plan& plan) {
    for (const mount_plan* m : by_depth(plan.mounts)) {
        const std::uint32_t flags = bit(m->readonly, wire::mount_readonly) |
                                    bit(m->readonly && m->recursive_readonly, wire::mount_recursive_readonly) |
                                    bit(m->nosuid, wire::mount_nosuid) | bit(m->nodev, wire::mount_nodev) |
                                    bit(m->noexec, wire::mount_noexec);
        w.begin(tag::mount).number(static_cast<std::uint32_t>(m->kind));
        if (m->kind == mount_kind::bind)
            w.path("the source of mount " + m->target, m->source);
        else
            w.text("source", "");
        w.path("a mount's target", m->target).number(flags).number(static_cast<std::uint32_t>(m->propagation));
        w.number(static_cast<std::uint32_t>(m->options.size()));
        for (const auto& option : m->options) w.text("a mount option of " + m->target, option);
        w.end();
    }
}

std::vector<std::string_view> split(std::string_view list) {
    std::vector<std::string_view> parts;
    while (!list.empty()) {
        const auto comma = list.find(',');
        if (comma != 0) parts.push_back(list.substr(0, comma));
        list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    }
    return parts;
}

void add_cgroups(plan_writer& w, const cgroup_plan& plan) {
    for (const auto& h : plan.v1) {
        const auto options = split(h.options);
        std::string name = h.options; // "cpu,cpuacct", as the host's own mount points are called
        if (const auto named = h.options.find("name="); named != std::string::npos) name = h.options.substr(named + 5);
        w.begin(tag::cgroup_v1).path("a cgroup directory", h.dir).text("a hierarchy", name);
        w.number(static_cast<std::uint32_t>(options.size()));
        for (const auto option : options) w.text("a hierarchy", option);
        w.end();
    }
    if (!plan.v2.empty()) w.begin(tag::cgroup_v2).path("the cgroup directory", plan.v2).end();
    w.begin(tag::cgroup_head)
        .number(plan.host_namespace)
        .text("freezer", plan.freezer_dir)
        .text("oom file", plan.oom_file)
        .end();
}

result<void> add_root(plan_writer& w, const rootfs_plan& plan) {
    if (!plan.overlay) {
        w.begin(tag::root).number(wire::root_bind).path("the root directory", plan.bind).text("", "").text("", "");
        w.number(plan.readonly).end();
        return {};
    }
    const overlay_plan& o = *plan.overlay;
    if (o.lower.empty()) return invalid("the overlay root has no lower layer");
    if (o.upper.empty() != o.work.empty()) return invalid("the overlay root needs both upper and work, or neither");
    if (o.upper.empty() && o.lower.size() == 1) { // overlay refuses a single layer; it is its own read-only root
        const std::string only = o.lower[0].starts_with('/') ? o.lower[0] : o.base + "/" + o.lower[0];
        return add_root(w, {.overlay = {}, .bind = only, .readonly = true});
    }
    w.begin(tag::root)
        .number(wire::root_overlay)
        .text("overlay base", o.base)
        .text("upper", o.upper)
        .text("work", o.work);
    w.number(plan.readonly || o.upper.empty()).end();
    for (const auto& layer : o.lower) w.begin(tag::lower).text("a layer", layer).end();
    for (const auto& option : o.options) w.begin(tag::root_option).text("an overlay option", option).end();
    return {};
}

} // namespace

bool valid_id(std::string_view id) noexcept {
    const auto allowed = [](char c, bool first) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
               c == '-' || (c == '.' && !first);
    };
    if (id.empty() || id.size() > wire::max_id) return false;
    for (std::size_t i = 0; i < id.size(); ++i)
        if (!allowed(id[i], i == 0)) return false;
    return true;
}

result<std::string> encode(const sandbox_plan& plan) {
    if (!valid_id(plan.id)) return invalid("sandbox id \"" + plan.id + "\" is not [A-Za-z0-9_+-][A-Za-z0-9_+.-]*");
    plan_writer w(wire::plan_kind::sandbox);
    const std::uint32_t flags = bit(!plan.host_network, wire::pod_new_net) | bit(!plan.host_ipc, wire::pod_new_ipc) |
                                bit(!plan.host_uts, wire::pod_new_uts) | bit(plan.shared_pid, wire::pod_shared_pid);
    w.begin(tag::pod)
        .text("id", plan.id)
        .path("the run directory", plan.run_dir)
        .number(flags)
        .text("hostname", plan.hostname)
        .text("domain name", plan.domainname)
        .wide(plan.host_ipc ? 0 : plan.shm_bytes)
        .number(static_cast<std::uint32_t>(plan.oom_score_adj))
        .end();
    for (const auto& s : plan.sysctls) {
        std::string path = s.name;
        if (path.find('/') == std::string::npos) std::replace(path.begin(), path.end(), '.', '/');
        if (path.starts_with('/') || path.find("..") != std::string::npos)
            return invalid("sysctl name \"" + s.name + "\" is not valid");
        w.begin(tag::sysctl).text("a sysctl", path).text("sysctl " + s.name, s.value).end();
    }
    for (const auto& dir : plan.cgroup.v1) w.begin(tag::own_cgroup_v1).path("the supervisor's cgroup", dir).end();
    if (!plan.cgroup.v2.empty()) w.begin(tag::own_cgroup_v2).path("the supervisor's cgroup", plan.cgroup.v2).end();
    return std::move(w).finish();
}

result<std::string> encode(const container_plan& plan) {
    if (!valid_id(plan.id)) return invalid("container id \"" + plan.id + "\" is not [A-Za-z0-9_+-][A-Za-z0-9_+.-]*");
    GANTRY_CHECK(check_process(plan.process));
    plan_writer w(wire::plan_kind::container);
    const std::uint32_t flags = bit(plan.stdin_open, wire::container_stdin) |
                                bit(plan.stdin_open && plan.stdin_once, wire::container_stdin_once);
    w.begin(tag::container_head).text("id", plan.id);
    if (plan.log_path.empty())
        w.text("log path", "");
    else
        w.path("the log path", plan.log_path);
    w.number(static_cast<std::uint32_t>(plan.pid)).number(flags).end();
    add_process(w, plan.process);
    GANTRY_CHECK(add_root(w, plan.rootfs));
    add_mounts(w, plan);
    for (const auto& path : plan.masked_paths) w.begin(tag::masked).path("a masked path", path).end();
    for (const auto& path : plan.readonly_paths) w.begin(tag::readonly).path("a read-only path", path).end();
    for (const auto& d : plan.devices) {
        if (d.type != 'c' && d.type != 'b') return invalid("device " + d.path + " is neither 'c' nor 'b'");
        w.begin(tag::device)
            .path("a device", d.path)
            .number(static_cast<std::uint32_t>(d.type))
            .number(d.major)
            .number(d.minor);
        w.number(d.mode).number(d.uid).number(d.gid).end();
    }
    add_cgroups(w, plan.cgroup);
    return std::move(w).finish();
}

result<std::string> encode(const exec_plan& plan) {
    GANTRY_CHECK(check_process(plan.process));
    plan_writer w(wire::plan_kind::exec);
    w.begin(tag::exec_head).wide(plan.timeout_ns).wide(plan.capture_limit).end();
    add_process(w, plan.process);
    return std::move(w).finish();
}

} // namespace gantry::cri_native::launch
