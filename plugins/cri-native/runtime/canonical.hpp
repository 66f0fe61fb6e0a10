// Equality of messages.
#pragma once

#include <string>

#include <google/protobuf/message_lite.h>

namespace gantry::cri_native {

/// The message's bytes with maps in order of their keys: equal messages give equal bytes.
std::string canonical(const google::protobuf::MessageLite& message);

} // namespace gantry::cri_native
