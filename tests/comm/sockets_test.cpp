#include "comm/sockets.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/base/error.h"
#include "tests/support/catch.h"

namespace convoy {
namespace {

/// A link over a real connection, and the bare socket at its other end.
struct Pair {
  Descriptor bare;
  MessageLink link;
};

Pair connected() {
  Listener listener(usable_interfaces(list_interfaces(), "lo", false));
  std::string error;
  Descriptor bare = connect_to(listener.endpoints().front(), 5, error);
  REQUIRE(bare);
  std::optional<Descriptor> in;
  while (!in) in = listener.accept();
  return {std::move(bare), MessageLink(std::move(*in))};
}

void give(const Pair& pair, const std::string& bytes) {
  REQUIRE(::send(pair.bare.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
}

std::string frame(std::uint32_t type, std::uint64_t sequence, const std::string& body) {
  const auto head = frame_head(type, sequence, body);
  return std::string(head.data(), head.size()) + body;
}

/// The next message of `link`, once it is there.
std::optional<Message> wait_for(MessageLink& link) {
  for (;;) {
    if (auto message = link.next()) return message;
    if (link.state() != MessageLink::State::open) return {};
    pollfd wait = {link.fd(), POLLIN, 0};
    REQUIRE(::poll(&wait, 1, 10000) == 1);
    link.read();
  }
}

std::string damage(const std::string& bytes) {
  Pair pair = connected();
  give(pair, bytes);
  try {
    wait_for(pair.link);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::communication);
    return error.text();
  }
  return "";
}

}  // namespace

TEST_CASE("the checksum is CRC-32") {
  const std::string text = "123456789";
  CHECK(crc32(text) == 0xCBF43926u);
  CHECK(crc32(std::string("6789"), crc32(std::string("12345"))) == 0xCBF43926u);
}

TEST_CASE("messages arrive whole and in order, however they are cut") {
  Pair pair = connected();
  const std::string bytes = frame(7, 0, "one") + frame(8, 1, "") + frame(9, kOutside, "last");
  for (char byte : bytes) give(pair, std::string(1, byte));
  for (auto [type, body] : {std::pair(7, "one"), std::pair(8, ""), std::pair(9, "last")}) {
    const auto message = wait_for(pair.link);
    REQUIRE(message);
    CHECK(static_cast<int>(message->type) == type);
    CHECK(message->body == body);
  }
  pair.bare.reset();
  CHECK(!wait_for(pair.link));
  CHECK(pair.link.state() == MessageLink::State::closed);
}

TEST_CASE("a link sends what another one reads, longer than the system's buffers") {
  Pair pair = connected();
  MessageLink other(std::move(pair.bare));
  const std::string body(kLongestBody, 'x');
  pair.link.send(3, body);
  std::optional<Message> message;
  while (!message) {
    pair.link.flush();
    other.read();
    message = other.next();
  }
  CHECK(message->body == body);
}

TEST_CASE("each flipped byte of a message is found") {
  const std::string good = frame(7, 0, "body");
  REQUIRE(damage(good).empty());
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    INFO(i);
    CHECK(damage(bad).find("message 0") != std::string::npos);
  }
}

TEST_CASE("a message that is missing is told by the number of the next") {
  CHECK(damage(frame(7, 1, "body")) == "message 1 came, expected 0");
}

TEST_CASE("nobody listens: why is told") {
  Endpoint nowhere;
  {
    Listener listener(usable_interfaces(list_interfaces(), "lo", false));
    nowhere = listener.endpoints().front();
  }
  std::string error;
  CHECK(!connect_to(nowhere, 5, error));
  CHECK(error.find("Connection refused") != std::string::npos);
}

}  // namespace convoy
