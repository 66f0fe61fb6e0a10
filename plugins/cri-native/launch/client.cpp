#include "plugins/cri-native/launch/client.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cstring>
#include <map>

#include "plugins/cri-native/launch/codec.hpp"
#include "plugins/cri-native/launch/failure.hpp"
#include "plugins/cri-native/launch/memfd.hpp"
#include "plugins/cri-native/launch/spawn.hpp"
#include "plugins/cri-native/launch/wire.hpp"

namespace gantry::cri_native::launch {

namespace {

/// A reply or event, while on_readable looks at it.
struct incoming {
    wire::header head{};
    wire::records records{nullptr, 0};
    std::array<base::unique_fd, wire::max_message_fds> fds;

    wire::fields first(wire::tag t) const {
        for (auto r = records; r.next();)
            if (r.is(t)) return r.body();
        return {};
    }
};

std::string to_string(wire::text t) { return {t.data, t.size}; }

container_info read_container(wire::fields f) {
    container_info c;
    c.id = to_string(f.text());
    c.state = static_cast<container_state>(f.u32());
    c.pid = static_cast<pid_t>(f.u32());
    c.created_ns = static_cast<std::int64_t>(f.u64());
    c.started_ns = static_cast<std::int64_t>(f.u64());
    c.finished_ns = static_cast<std::int64_t>(f.u64());
    c.exit_code = f.i32();
    c.exit_signal = f.i32();
    c.oom_killed = f.u32() != 0;
    c.log_dropped = f.u64();
    return c;
}

failure read_failure(wire::fields f) {
    failure out;
    out.step = static_cast<wire::step>(f.u32());
    out.err = f.i32();
    out.object = to_string(f.text());
    out.detail = to_string(f.text());
    return out;
}

result<exec_result> read_exec_exit(incoming& in) {
    wire::fields f = in.first(wire::tag::exec_exit);
    exec_result out;
    out.exit_code = f.i32();
    out.timed_out = f.u32() != 0;
    const std::size_t out_size = f.u32();
    const std::size_t err_size = f.u32();
    if (f.u32() != 0) {
        out.stdout_data = to_string(f.text());
        out.stderr_data = to_string(f.text());
        return out;
    }
    struct stat st {};
    if (!in.fds[0] || ::fstat(in.fds[0].get(), &st) != 0 || static_cast<std::size_t>(st.st_size) != out_size + err_size)
        return error{.code = code::internal, .message = "the captured output came without its memory"};
    if (st.st_size == 0) return out;
    void* pages = ::mmap(nullptr, out_size + err_size, PROT_READ, MAP_PRIVATE, in.fds[0].get(), 0);
    if (pages == MAP_FAILED) return sys_error("map the captured output", errno);
    out.stdout_data.assign(static_cast<const char*>(pages), out_size);
    out.stderr_data.assign(static_cast<const char*>(pages) + out_size, err_size);
    ::munmap(pages, out_size + err_size);
    return out;
}

class request_writer {
public:
    request_writer(wire::op op, std::uint32_t seq) {
        const wire::header head{wire::magic, wire::abi, static_cast<std::uint16_t>(op), seq, 0, 0};
        bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
        writer_.begin(wire::tag::request);
    }
    request_writer& text(const std::string& t) {
        writer_.text(t.data(), t.size());
        return *this;
    }
    request_writer& number(std::int64_t v) {
        writer_.u32(static_cast<std::uint32_t>(v));
        return *this;
    }
    const std::string& finish() {
        writer_.end();
        return bytes_;
    }

private:
    std::string bytes_;
    wire::writer<std::string> writer_{bytes_};
};

} // namespace

struct client::impl {
    /// Gets a reply, or the error that stands for it.
    using handler = std::function<void(result<incoming*>)>;

    std::string run_dir;
    events on;
    base::unique_fd socket;
    base::unique_fd pidfd;
    pid_t child = 0; ///< our own child, to be reaped when it ends; 0 if another process started it
    pid_t pid = 0;
    std::uint32_t features = 0;
    std::uint32_t next_seq = 0;
    std::map<std::uint32_t, handler> pending;
    std::map<std::string, std::string> argument_sizes; ///< of containers not started yet
    std::shared_ptr<bool> alive = std::make_shared<bool>(true);
    bool lost = false;

    ~impl() {
        *alive = false;
        if (child > 0) ::waitid(P_PID, static_cast<id_t>(child), nullptr, WEXITED | WNOHANG);
    }

    error gone(std::string why) const {
        return {.code = code::unavailable, .message = "the supervisor in " + run_dir + " " + std::move(why)};
    }

    result<void> transmit(const std::string& bytes, const std::vector<int>& fds) {
        iovec part{const_cast<char*>(bytes.data()), bytes.size()};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::max_message_fds)] = {};
        msghdr m{};
        m.msg_iov = &part;
        m.msg_iovlen = 1;
        if (!fds.empty()) {
            m.msg_control = control;
            m.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
            cmsghdr* head = CMSG_FIRSTHDR(&m);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
            std::memcpy(CMSG_DATA(head), fds.data(), sizeof(int) * fds.size());
        }
        for (;;) {
            if (::sendmsg(socket.get(), &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
            if (errno == EINTR) continue;
            if (errno != EAGAIN) return gone(std::string("cannot be reached: ") + std::strerror(errno));
            return error{.code = code::busy,
                         .message = "the supervisor in " + run_dir + " does not read its requests",
                         .retryable = true};
        }
    }

    std::uint32_t call(wire::op op, const std::function<void(request_writer&)>& fill, const std::vector<int>& fds,
                       handler done) {
        const std::uint32_t seq = ++next_seq;
        request_writer w(op, seq);
        fill(w);
        result<void> sent = lost ? result<void>(gone("is gone")) : transmit(w.finish(), fds);
        if (sent)
            pending.emplace(seq, std::move(done));
        else
            done(std::move(sent).error());
        return seq;
    }

    void call_id(wire::op op, const std::string& id, callback<void> done) {
        call(
            op, [&](request_writer& w) { w.text(id); }, {}, plain(std::move(done)));
    }

    static handler plain(callback<void> done) {
        return [done = std::move(done)](result<incoming*> r) {
            done(r ? result<void>() : result<void>(std::move(r).error()));
        };
    }

    void hello(std::function<void(result<void>)> done) {
        call(
            wire::op::hello, [](request_writer&) {}, {},
            [this, done = std::move(done)](result<incoming*> r) {
                if (!r) {
                    reap(); // a supervisor that could not set its pod up says so and ends
                    return done(std::move(r).error());
                }
                wire::fields f = (*r)->first(wire::tag::sandbox);
                pid = static_cast<pid_t>(f.u32());
                features = f.u32();
                pidfd = std::move((*r)->fds[0]);
                done({});
            });
    }

    // Our child leaves a zombie. Its socket closes a moment before it can be reaped, hence the short wait.
    void reap() {
        constexpr int moment_ms = 100;
        if (child <= 0) return;
        pollfd end{pidfd.get(), POLLIN, 0};
        if (::poll(&end, 1, moment_ms) == 1) ::waitid(P_PID, static_cast<id_t>(child), nullptr, WEXITED | WNOHANG);
        child = 0;
    }

    // Every way in which the connection ends comes here, once.
    void lose(const error& why) {
        if (lost) return;
        lost = true;
        reap();
        auto waiting = std::move(pending);
        pending.clear();
        const auto living = alive;
        for (auto& [seq, done] : waiting) {
            done(why);
            if (!*living) return;
        }
        if (on.lost) on.lost(why);
    }

    void dispatch(incoming& in) {
        if (static_cast<wire::op>(in.head.op) == wire::op::exited && (in.head.flags & wire::flag_reply) == 0) {
            if (on.exited) on.exited(read_container(in.first(wire::tag::container)));
            return;
        }
        const auto found = pending.find(in.head.seq);
        if (found == pending.end()) return;
        if (in.head.flags & wire::flag_more) return found->second(&in);
        const handler done = std::move(found->second);
        pending.erase(found);
        if (in.head.failed)
            done(to_error(read_failure(in.first(wire::tag::failure))));
        else
            done(&in);
    }
};

client::client(std::unique_ptr<impl> state) : impl_(std::move(state)) {}
client::~client() = default;

int client::fd() const noexcept { return impl_->socket.get(); }
pid_t client::pid() const noexcept { return impl_->pid; }
std::uint32_t client::features() const noexcept { return impl_->features; }

result<std::unique_ptr<client>> client::spawn(const supervisor_image& image, const sandbox_plan& plan, events on,
                                              callback<void> ready) {
    GANTRY_TRY(auto child, spawn_supervisor(image.fd(), plan));
    auto state = std::make_unique<impl>();
    state->run_dir = plan.run_dir;
    state->on = std::move(on);
    state->child = child.pid;
    state->pidfd = std::move(child.pidfd);
    auto socket = connect_supervisor(plan.run_dir);
    if (!socket) {
        ::kill(child.pid, SIGKILL);
        state->reap();
        return std::move(socket).error();
    }
    state->socket = std::move(*socket);
    state->hello(std::move(ready));
    return std::unique_ptr<client>(new client(std::move(state)));
}

result<std::unique_ptr<client>> client::connect(const std::string& run_dir, events on,
                                                callback<std::vector<container_info>> ready) {
    GANTRY_TRY(auto socket, connect_supervisor(run_dir));
    auto state = std::make_unique<impl>();
    state->run_dir = run_dir;
    state->on = std::move(on);
    state->socket = std::move(socket);
    std::unique_ptr<client> self(new client(std::move(state)));
    client* const raw = self.get();
    raw->impl_->hello([raw, ready = std::move(ready)](result<void> r) {
        if (!r) return ready(std::move(r).error());
        raw->list(ready);
    });
    return self;
}

void client::on_readable() {
    impl& s = *impl_;
    const auto living = s.alive;
    const std::unique_ptr<char[]> bytes(new char[wire::max_message]); // not value-initialised: most messages are small
    while (!s.lost) {
        incoming in;
        iovec part{bytes.get(), wire::max_message};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::max_message_fds)];
        msghdr m{};
        m.msg_iov = &part;
        m.msg_iovlen = 1;
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        const ssize_t n = ::recvmsg(s.socket.get(), &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) return s.lose(s.gone(n == 0 ? "has ended" : std::string("failed: ") + std::strerror(errno)));
        std::size_t taken = 0;
        for (cmsghdr* head = CMSG_FIRSTHDR(&m); head; head = CMSG_NXTHDR(&m, head)) {
            if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
            const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
                base::unique_fd owned(fd);
                if (taken < in.fds.size()) in.fds[taken++] = std::move(owned);
            }
        }
        const auto size = static_cast<std::size_t>(n);
        if (size >= sizeof in.head) std::memcpy(&in.head, bytes.get(), sizeof in.head);
        if (size < sizeof in.head || in.head.magic != wire::magic || (m.msg_flags & MSG_TRUNC) != 0)
            return s.lose(s.gone("sent what is not a message"));
        in.records = wire::records(bytes.get() + sizeof in.head, size - sizeof in.head);
        s.dispatch(in);
        if (!*living) return;
    }
}

void client::create(const container_plan& plan, callback<pid_t> done) {
    auto bytes = encode(plan);
    if (!bytes) return done(std::move(bytes).error());
    const auto memory = make_sealed("container-plan", *bytes, memfd_use::data);
    if (!memory) return done(memory.error());
    impl_->argument_sizes[plan.id] = argument_sizes(plan.process);
    impl_->call(
        wire::op::create, [](request_writer&) {}, {memory->get()},
        [done = std::move(done)](result<incoming*> r) {
            if (!r) return done(std::move(r).error());
            done(static_cast<pid_t>((*r)->first(wire::tag::request).u32()));
        });
}

void client::start(const std::string& id, callback<void> done) {
    const auto sizes = impl_->argument_sizes.extract(id);
    impl_->call_id(wire::op::start, id, [done = std::move(done), text = sizes ? sizes.mapped() : ""](result<void> r) {
        if (!r && r.error().sys_errno == E2BIG) r.error().message += text;
        done(std::move(r));
    });
}

void client::forget(const std::string& id, callback<void> done) {
    impl_->call_id(wire::op::forget, id, std::move(done));
}
void client::reopen_log(const std::string& id, callback<void> done) {
    impl_->call_id(wire::op::reopen_log, id, std::move(done));
}

void client::signal(const std::string& id, int signal, callback<void> done) {
    impl_->call(
        wire::op::signal, [&](request_writer& w) { w.text(id).number(signal); }, {}, impl::plain(std::move(done)));
}

void client::list(callback<std::vector<container_info>> done) {
    auto all = std::make_shared<std::vector<container_info>>();
    impl_->call(
        wire::op::list, [](request_writer&) {}, {},
        [all, done = std::move(done)](result<incoming*> r) {
            if (!r) return done(std::move(r).error());
            for (auto records = (*r)->records; records.next();)
                if (records.is(wire::tag::container)) all->push_back(read_container(records.body()));
            if (((*r)->head.flags & wire::flag_more) == 0) done(std::move(*all));
        });
}

namespace {

std::vector<int> given(const stdio& s, std::uint32_t& flags) {
    std::vector<int> fds;
    const std::pair<int, wire::exec_flag> ends[] = {
        {s.in, wire::exec_stdin}, {s.out, wire::exec_stdout}, {s.err, wire::exec_stderr}};
    for (const auto& [fd, flag] : ends) {
        if (fd < 0) continue;
        fds.push_back(fd);
        flags |= flag;
    }
    return fds;
}

} // namespace

std::uint32_t client::exec(const std::string& id, const exec_plan& plan, std::uint32_t flags, stdio streams,
                           callback<exec_result> done) {
    const std::uint32_t handle = impl_->next_seq + 1;
    auto bytes = encode(plan);
    if (!bytes) return done(std::move(bytes).error()), handle;
    const auto memory = make_sealed("exec-plan", *bytes, memfd_use::data);
    if (!memory) return done(memory.error()), handle;
    std::vector<int> fds = given(streams, flags);
    fds.insert(fds.begin(), memory->get());
    return impl_->call(
        wire::op::exec, [&](request_writer& w) { w.text(id).number(handle).number(flags); }, fds,
        [done = std::move(done), sizes = argument_sizes(plan.process)](result<incoming*> r) {
            if (r) return done(read_exec_exit(**r));
            if (r.error().sys_errno == E2BIG) r.error().message += sizes;
            done(std::move(r).error());
        });
}

std::uint32_t client::exec_captured(const std::string& id, const exec_plan& plan, callback<exec_result> done) {
    return exec(id, plan, wire::exec_captured, {}, std::move(done));
}

std::uint32_t client::exec_streams(const std::string& id, const exec_plan& plan, stdio streams,
                                   callback<exec_result> done) {
    return exec(id, plan, 0, streams, std::move(done));
}

void client::exec_signal(std::uint32_t handle, int signal) {
    request_writer w(wire::op::exec_signal, 0);
    if (!impl_->lost) static_cast<void>(impl_->transmit(w.number(handle).number(signal).finish(), {}));
}

void client::exec_resize(std::uint32_t handle, tty_size size) {
    request_writer w(wire::op::exec_resize, 0);
    if (!impl_->lost)
        static_cast<void>(impl_->transmit(w.number(handle).number(size.columns).number(size.rows).finish(), {}));
}

void client::attach(const std::string& id, stdio streams, callback<void> done) {
    std::uint32_t flags = 0;
    const std::vector<int> fds = given(streams, flags);
    impl_->call(
        wire::op::attach, [&](request_writer& w) { w.text(id).number(flags); }, fds, impl::plain(std::move(done)));
}

void client::resize(const std::string& id, tty_size size, callback<void> done) {
    impl_->call(
        wire::op::resize, [&](request_writer& w) { w.text(id).number(size.columns).number(size.rows); }, {},
        impl::plain(std::move(done)));
}

void client::socket(int family, int type, callback<base::unique_fd> done) {
    impl_->call(
        wire::op::socket, [&](request_writer& w) { w.number(family).number(type); }, {},
        [done = std::move(done)](result<incoming*> r) {
            if (!r) return done(std::move(r).error());
            done(std::move((*r)->fds[0]));
        });
}

void client::shutdown(bool force, callback<void> done) {
    impl_->call(
        wire::op::shutdown, [&](request_writer& w) { w.number(force); }, {},
        [state = impl_.get(), done = std::move(done)](result<incoming*> r) {
            if (!r) return done(std::move(r).error());
            state->reap();
            done({});
        });
}

} // namespace gantry::cri_native::launch
