// The bytes between plugin and pod supervisor: message header, record format, operations, steps. Shared by both sides,
// so nothing here allocates or needs a library. A supervisor outlives the plugin that started it: fields are only ever
// appended to records (a reader gives 0 or "" past the end of a record), tags and numbers are never reused, and a
// record that must be understood has a tag below optional_tag.
//
// Message: header, then records. Plan (in a sealed memfd): plan_header, then records. Record: tag, length, fields.
// Field: u32, u64, or text = u32 length, bytes, NUL. Host byte order: both ends run on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gantry::cri_native::launch::wire {

inline constexpr std::uint32_t magic = 0x50534e47; // "GNSP"
inline constexpr std::uint16_t abi = 1;
inline constexpr std::size_t max_message = 64u << 10;
inline constexpr std::size_t max_message_fds = 8;
inline constexpr std::size_t max_id = 128;

enum class op : std::uint16_t {
    hello = 1,       // u32 takeover -> sandbox record; fds: the supervisor's pidfd
    create = 2,      // fds: plan -> u32 pid
    start = 3,       // id
    signal = 4,      // id, u32 signal
    forget = 5,      // id
    list = 6,        // -> container records, flag_more on all but the last message
    exec = 7,        // id, u32 handle, u32 exec_flags; fds: plan, then stdin, stdout, stderr as the flags say
    exec_signal = 8, // u32 handle, u32 signal
    exec_resize = 9, // u32 handle, u32 columns, u32 rows
    attach = 10,     // id, u32 exec_flags; fds: stdin, stdout, stderr as the flags say
    resize = 11,     // id, u32 columns, u32 rows
    reopen_log = 12, // id
    socket = 13,     // u32 family, u32 type -> fds: the socket
    shutdown = 14,   // u32 force
    exited = 100,    // event: container record
};

enum flag : std::uint16_t {
    flag_reply = 1, // the message answers `seq`
    flag_more = 2,  // further messages of the same reply follow
};

enum exec_flag : std::uint32_t {
    exec_stdin = 1,
    exec_stdout = 2,
    exec_stderr = 4,
    exec_captured = 8, // stdout and stderr come back in the reply
};

struct header {
    std::uint32_t magic;
    std::uint16_t abi;
    std::uint16_t op;
    std::uint32_t seq;
    std::uint16_t flags;
    std::uint16_t failed; // reply: 1 if it holds a failure record
};

struct plan_header {
    std::uint32_t magic;
    std::uint16_t abi;
    std::uint16_t kind;   // plan_kind
    std::uint32_t length; // of all, header included
};

enum class plan_kind : std::uint16_t { sandbox = 1, container = 2, exec = 3 };

enum class tag : std::uint16_t {
    // messages
    request = 1,   // the fields that `op` lists
    sandbox = 2,   // u32 supervisor pid, u32 features
    container = 3, // id, u32 state, u32 pid, u64 created, started, finished, u32 code, u32 signal, u32 oom, u64 dropped
    failure = 4,   // u32 step, u32 errno, text object, text detail
    exec_exit = 5, // u32 code, u32 timed_out, u32 out bytes, u32 err bytes, u32 inline; text out, text err when inline
    // sandbox plan
    pod = 16,           // id, run dir, u32 pod_flags, hostname, domainname, u64 shm bytes, u32 oom_score_adj
    sysctl = 17,        // path below /proc/sys, value
    own_cgroup_v1 = 18, // directory to join
    own_cgroup_v2 = 19, // directory to join if not born there
    // process
    argument = 32,    // text
    environment = 33, // text
    process = 34,     // cwd, u32 uid, u32 gid, u32 umask, u64 capabilities, u32 process_flags, u32 oom_score_adj, u32
                      // columns, rows, PATH
    group = 35,       // u32 gid
    rlimit = 36,      // u32 resource, u64 soft, u64 hard
    seccomp = 37,     // struct sock_filter[], as a text
    // container plan
    container_head = 48, // id, log path, u32 pid_mode, u32 container_flags
    root = 49,           // u32 root_kind, bind path or overlay base, upper, work, u32 readonly
    lower = 50,          // text
    root_option = 51,    // text
    mount = 52,          // u32 kind, source, target, u32 mount_flags, u32 propagation, u32 option count, options
    masked = 53,         // text
    readonly = 54,       // text
    device = 55,         // path, u32 type, major, minor, mode, uid, gid
    cgroup_v1 = 56,      // directory, mount name, u32 option count, options of the mount
    cgroup_v2 = 57,      // directory
    cgroup_head = 58,    // u32 host namespace, freezer dir, oom file
    // exec plan
    exec_head = 64, // u64 timeout ns, u64 capture limit
};
inline constexpr std::uint16_t optional_tag = 0x8000;

enum pod_flag : std::uint32_t { pod_new_net = 1, pod_new_ipc = 2, pod_new_uts = 4, pod_shared_pid = 8 };
enum process_flag : std::uint32_t { process_no_new_privs = 1, process_tty = 2, process_oom_score_adj = 4 };
enum container_flag : std::uint32_t { container_stdin = 1, container_stdin_once = 2 };
enum root_kind : std::uint32_t { root_bind = 0, root_overlay = 1 };
enum mount_flag : std::uint32_t {
    mount_readonly = 1,
    mount_recursive_readonly = 2,
    mount_nosuid = 4,
    mount_nodev = 8,
    mount_noexec = 16
};

/// Kernel features that have a fallback; probed by each supervisor at its start.
enum feature : std::uint32_t {
    feature_clone3 = 1,
    feature_mount_api = 2, // open_tree, move_mount, fsopen, fsconfig, fsmount
    feature_mount_setattr = 4,
    feature_openat2 = 8,
    feature_close_range = 16,
};

/// What the supervisor or a child of it was doing when it failed; the plugin makes a sentence of it
/// (launch/failure.cpp).
enum class step : std::uint16_t {
    none = 0,
    protocol = 1,
    plan = 2,
    not_found = 3, // no such container
    state = 4,     // wrong state for the operation
    busy = 5,      // another plugin process holds the supervisor
    memory = 6,
    namespaces = 10,
    hostname = 11,
    sysctl = 12,
    pin = 13,
    shm = 14,
    pod_init = 15,
    loopback = 16,
    log = 20,
    pipe = 21,
    clone = 22,
    cgroup_join = 23,
    cgroup_namespace = 24,
    propagation = 25,
    bind_source = 26,
    rootfs = 27,
    mount_target = 28,
    mount_target_symlink = 29,
    mount_target_proc = 30,
    mount = 31,
    mount_attributes = 32,
    device = 33,
    cgroup_mount = 34,
    masked_path = 35,
    readonly_path = 36,
    console = 37,
    pivot_root = 38,
    proc_write = 39,
    cwd = 40,
    cwd_outside = 41,
    session = 42,
    rlimit = 43,
    capabilities = 44,
    user = 45,
    no_new_privs = 46,
    seccomp = 47,
    exec_lookup = 48,
    exec = 49,
    join = 50, // exec: the container's namespaces
    frozen = 51,
    died = 52, // the child ended before it could report
    stdio = 53,
    socket = 54,
};

/// Bytes that end in a NUL which `size` does not count.
struct text {
    const char* data = "";
    std::uint32_t size = 0;

    bool empty() const noexcept { return size == 0; }
    bool operator==(const char* other) const noexcept {
        return std::strlen(other) == size && std::memcmp(data, other, size) == 0;
    }
};

/// Reads the fields of one record. Past its end every field is 0 or ""; a field cut in the middle makes it bad().
class fields {
public:
    fields() = default;
    fields(const char* data, std::size_t size) noexcept : at_(data), left_(size) {}

    std::uint32_t u32() noexcept { return number<std::uint32_t>(); }
    std::uint64_t u64() noexcept { return number<std::uint64_t>(); }
    std::int32_t i32() noexcept { return static_cast<std::int32_t>(u32()); }
    wire::text text() noexcept {
        if (left_ == 0) return {};
        const std::uint32_t size = u32();
        if (bad_ || size >= left_ || at_[size] != '\0') {
            fail();
            return {};
        }
        const wire::text value{at_, size};
        at_ += size + 1;
        left_ -= size + 1;
        return value;
    }
    bool bad() const noexcept { return bad_; }

private:
    template <class T>
    T number() noexcept {
        T value = 0;
        if (left_ == 0) return value;
        if (left_ < sizeof value) {
            fail();
            return value;
        }
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        left_ -= sizeof value;
        return value;
    }
    void fail() noexcept {
        bad_ = true;
        left_ = 0;
    }

    const char* at_ = nullptr;
    std::size_t left_ = 0;
    bool bad_ = false;
};

/// Walks the records in a buffer.
class records {
public:
    records(const char* data, std::size_t size) noexcept : at_(data), left_(size) {}

    /// False at the end, or where the bytes do not hold together (then bad()).
    bool next() noexcept {
        if (left_ == 0) return false;
        std::uint32_t head[2];
        if (left_ < sizeof head) return fail();
        std::memcpy(head, at_, sizeof head);
        if (head[0] > 0xffff || head[1] > left_ - sizeof head) return fail();
        tag_ = static_cast<std::uint16_t>(head[0]);
        bytes_ = {at_, static_cast<std::uint32_t>(sizeof head + head[1])};
        body_ = fields(at_ + sizeof head, head[1]);
        at_ += sizeof head + head[1];
        left_ -= sizeof head + head[1];
        return true;
    }
    bool is(wire::tag wanted) const noexcept { return tag_ == static_cast<std::uint16_t>(wanted); }
    std::uint16_t raw_tag() const noexcept { return tag_; }
    fields body() const noexcept { return body_; }
    /// The record as it stands, head included.
    text bytes() const noexcept { return bytes_; }
    bool bad() const noexcept { return bad_; }

private:
    bool fail() noexcept {
        bad_ = true;
        left_ = 0;
        return false;
    }

    const char* at_;
    std::size_t left_;
    std::uint16_t tag_ = 0;
    fields body_;
    text bytes_;
    bool bad_ = false;
};

/// Appends records to anything that has append(const char*, size_t), size() and data() -> char*.
template <class Buffer>
class writer {
public:
    explicit writer(Buffer& out) noexcept : out_(out) {}

    writer& begin(tag t) {
        const std::uint32_t head[2] = {static_cast<std::uint32_t>(t), 0};
        start_ = out_.size();
        raw(head, sizeof head);
        return *this;
    }
    writer& u32(std::uint32_t v) { return raw(&v, sizeof v); }
    writer& u64(std::uint64_t v) { return raw(&v, sizeof v); }
    writer& text(const char* data, std::size_t size) {
        u32(static_cast<std::uint32_t>(size));
        raw(data, size);
        return raw("", 1);
    }
    void end() {
        const auto length = static_cast<std::uint32_t>(out_.size() - start_ - 2 * sizeof(std::uint32_t));
        if (out_.size() >= start_ + 2 * sizeof(std::uint32_t))
            std::memcpy(out_.data() + start_ + sizeof(std::uint32_t), &length, sizeof length);
    }

private:
    writer& raw(const void* data, std::size_t size) {
        out_.append(static_cast<const char*>(data), size);
        return *this;
    }

    Buffer& out_;
    std::size_t start_ = 0;
};

} // namespace gantry::cri_native::launch::wire
