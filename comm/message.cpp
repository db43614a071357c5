#include "comm/message.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace convoy {
namespace {

using Length = std::uint64_t;

void beat(Waiter& waiter) {
  if (waiter.board()) waiter.board()->beat();
}

}  // namespace

void send_message(SendEnd& channel, Waiter& waiter, const void* values, std::size_t bytes) {
  const Length length = bytes;
  const auto* from = static_cast<const std::byte*>(values);
  std::size_t head = sizeof length;
  std::size_t sent = 0;
  do {
    const std::span<std::byte> piece = channel.reserve(waiter);
    std::memcpy(piece.data(), &length, head);
    const std::size_t part = std::min(piece.size() - head, bytes - sent);
    if (part) std::memcpy(piece.data() + head, from + sent, part);
    channel.commit(head + part);
    beat(waiter);
    sent += part;
    head = 0;
  } while (sent < bytes);
  channel.flush(waiter);
}

std::size_t receive_message(ReceiveEnd& channel, Waiter& waiter, void* values, std::size_t bytes) {
  Length length = 0;
  std::size_t head = sizeof length;
  std::size_t got = 0;
  do {
    const std::span<const std::byte> piece = channel.front(waiter);
    std::memcpy(&length, piece.data(), head);
    const std::size_t part = piece.size() - head;
    if (part && length == bytes) {
      std::memcpy(static_cast<std::byte*>(values) + got, piece.data() + head, part);
    }
    channel.release();
    beat(waiter);
    got += part;
    head = 0;
  } while (got < length);
  return length;
}

}  // namespace convoy
