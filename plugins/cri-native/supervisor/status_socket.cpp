#include "plugins/cri-native/supervisor/status_socket.hpp"

#include <sys/socket.h>

namespace gantry::cri_native::supervisor {

report_result receive_report(int socket, child_report& report, int& handed_over) noexcept {
    handed_over = -1;
    iovec part{&report, sizeof report};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    const ssize_t n = sys::retry([&] { return ::recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC); });
    if (n < 0 && errno == EAGAIN) return report_result::nothing;
    if (n != static_cast<ssize_t>(sizeof report)) return report_result::end;
    const cmsghdr* head = CMSG_FIRSTHDR(&m);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        std::memcpy(&handed_over, CMSG_DATA(head), sizeof handed_over);
    report.object[sizeof report.object - 1] = '\0';
    report.detail[sizeof report.detail - 1] = '\0';
    return report_result::message;
}

} // namespace gantry::cri_native::supervisor
