// Messages of any length on a channel: the first piece begins with the length in 8 bytes.
#pragma once

#include <cstddef>

#include "comm/channel.h"
#include "comm/waiter.h"

namespace convoy {

void send_message(SendEnd& channel, Waiter& waiter, const void* values, std::size_t bytes);

/// Takes the oldest message off the channel and returns its length; its values go to `values` only
/// if they are `bytes` long.
std::size_t receive_message(ReceiveEnd& channel, Waiter& waiter, void* values, std::size_t bytes);

}  // namespace convoy
