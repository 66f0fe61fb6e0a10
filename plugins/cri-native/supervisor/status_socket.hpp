// The supervisor's end of a child's status socket.
#pragma once

#include "plugins/cri-native/supervisor/child.hpp"

namespace gantry::cri_native::supervisor {

enum class report_result { nothing, message, end };

/// Never blocks. `handed_over` gets the descriptor that came along, or -1.
report_result receive_report(int socket, child_report& report, int& handed_over) noexcept;

} // namespace gantry::cri_native::supervisor
