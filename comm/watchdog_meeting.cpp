#include "comm/watchdog_meeting.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "comm/deadline.h"

namespace convoy {
namespace {

constexpr double kPatience = 3;  // seconds for one address to answer

std::string make_token() {
  std::uint64_t bits[2] = {};
  if (::getrandom(bits, sizeof bits, 0) != sizeof bits) {
    CONVOY_FAIL(resource, "watchdog: the system gives no random numbers");
  }
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

void poll_for(std::vector<pollfd>& waits, double seconds) {
  ::poll(waits.data(), waits.size(), std::clamp(static_cast<int>(seconds * 1000), 1, 200));
}

/// The next message of `link`, which must be of `type`; empty if the other end goes or is late. A
/// failure that the other end tells is thrown.
std::optional<std::string> expect(MessageLink& link, Tell type, const Deadline& deadline) {
  for (;;) {
    if (auto message = link.next()) {
      if (message->type == static_cast<std::uint32_t>(Tell::failure)) {
        throw unpack_failed(message->body).error;
      }
      if (message->type != static_cast<std::uint32_t>(type)) return {};
      return message->body;
    }
    if (link.state() != MessageLink::State::open || deadline.left() == 0) return {};
    std::vector<pollfd> waits = {{link.fd(), POLLIN, 0}};
    poll_for(waits, deadline.left());
    link.read();
  }
}

[[noreturn]] void fail_gone(int rank, const Meeting& meeting) {
  const Member& gone = meeting.members[static_cast<std::size_t>(rank)];
  throw Error(
      ErrorKind::communication,
      fmt::format("meeting: it came and did not stay, host {}, pid {}", gone.host, gone.pid))
      .with_rank(rank);
}

/// The side that waits for others to come.
class Host {
 public:
  Host(const Listener& listener, const std::string& token, int size)
      : listener_(const_cast<Listener&>(listener)), token_(token), size_(size) {}

  /// Until the processes from `first` on are here, in `links` and `members`.
  void receive(int first, const Deadline& deadline, Meeting& meeting) {
    while (!absent(first, meeting).empty()) {
      if (deadline.left() == 0) fail_absent(first, meeting);
      wait(meeting, deadline);
      while (auto socket = listener_.accept()) guests_.emplace_back(std::move(*socket));
      for (MessageLink& guest : guests_) greet(guest, meeting);
      std::erase_if(guests_, [](const MessageLink& guest) {
        return guest.fd() < 0 || guest.state() != MessageLink::State::open;
      });
      check_present(meeting);
    }
  }

 private:
  std::vector<int> absent(int first, const Meeting& meeting) const {
    std::vector<int> ranks;
    for (int rank = first; rank < size_; ++rank) {
      if (!meeting.links.contains(rank)) ranks.push_back(rank);
    }
    return ranks;
  }

  [[noreturn]] void fail_absent(int first, const Meeting& meeting) const {
    const std::vector<int> ranks = absent(first, meeting);
    CONVOY_FAIL(communication, "meeting: rank{} {} of {} did not come; on {}",
                ranks.size() == 1 ? "" : "s", list_ranks(ranks), size_,
                describe(listener_.endpoints().front().interface));
  }

  void wait(const Meeting& meeting, const Deadline& deadline) const {
    std::vector<pollfd> waits;
    for (int fd : listener_.fds()) waits.push_back({fd, POLLIN, 0});
    for (const MessageLink& guest : guests_) waits.push_back({guest.fd(), POLLIN, 0});
    for (const auto& [rank, link] : meeting.links) waits.push_back({link.fd(), POLLIN, 0});
    poll_for(waits, deadline.left());
  }

  /// A guest that knows the token is a member; others are strangers, and are shown out.
  void greet(MessageLink& guest, Meeting& meeting) const {
    guest.read();
    try {
      const auto message = guest.next();
      if (!message) return;
      const Hello hello = unpack_hello(message->body);
      const int rank = hello.member.rank;
      const bool known = hello.token == token_ && rank > 0 && rank < size_;
      if (known) {
        guest.send(static_cast<std::uint32_t>(Tell::welcome), token_);
        meeting.members[static_cast<std::size_t>(rank)] = hello.member;
        meeting.links.insert_or_assign(rank, std::move(guest));
      }
    } catch (const Error&) {
      // not one of ours
    }
    guest = MessageLink(Descriptor());
  }

  /// Those who are here have nothing to say yet, unless they cannot go on.
  static void check_present(Meeting& meeting) {
    for (auto& [rank, link] : meeting.links) {
      link.read();
      const auto told = link.next();
      const bool failed = told && told->type == static_cast<std::uint32_t>(Tell::failure);
      if (failed) throw unpack_failed(told->body).error;
      if (link.state() != MessageLink::State::open) fail_gone(rank, meeting);
    }
  }

  Listener& listener_;
  const std::string& token_;
  int size_;
  std::vector<MessageLink> guests_;
};

/// Tries one address: a link to one that knows the token, else why not in `why`.
std::optional<MessageLink> try_endpoint(const Endpoint& endpoint, const Hello& hello,
                                        const Deadline& deadline, std::string& why) {
  const Deadline patience(std::min(kPatience, deadline.left()));
  Descriptor socket = connect_to(endpoint, patience.left(), why);
  if (!socket) return {};
  why = fmt::format("{} port {}: another program answers", describe(endpoint.interface),
                    endpoint.port);
  MessageLink link(std::move(socket));
  link.send(static_cast<std::uint32_t>(Tell::hello), pack(hello));
  try {
    if (expect(link, Tell::welcome, patience) == hello.token) return link;
  } catch (const Error&) {
    // not one of ours
  }
  return {};
}

MessageLink visit(int rank, const std::vector<Endpoint>& endpoints, const Hello& hello,
                  const Deadline& deadline) {
  std::string why = "it does not listen";
  for (;;) {
    for (const Endpoint& endpoint : endpoints) {
      if (auto link = try_endpoint(endpoint, hello, deadline, why)) return std::move(*link);
    }
    if (deadline.left() == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw Error(ErrorKind::communication,
              fmt::format("meeting: no way from host {} to rank {}, {}; --iface NAME chooses "
                          "another interface",
                          hello.member.host, rank, why))
      .with_rank(hello.member.rank);
}

std::vector<Interface> own_interfaces(const World& world, const WatchdogOptions& options) {
  const char* variable = std::getenv("CONVOY_IFACE");
  const std::string wanted = options.iface.empty() && variable ? variable : options.iface;
  return usable_interfaces(list_interfaces(), wanted, world.local_size < world.size);
}

/// The interface through which a guest came in.
std::string came_in_by(const MessageLink& link, const Listener& listener) {
  std::string address = local_address(link.fd());
  for (const Endpoint& endpoint : listener.endpoints()) {
    if (endpoint.interface.address == address) return describe(endpoint.interface);
  }
  return address;
}

/// Listens and tells all where; if that fails, it tells all why.
Listener open_listener(Member& self, const std::string& token, const World& world,
                       const WatchdogOptions& options, const Watchdog::FromFirst& from_first) {
  try {
    Listener listener(own_interfaces(world, options));
    self.endpoints = listener.endpoints();
    from_first("+" + pack(Hello{token, self}));
    return listener;
  } catch (const Error& error) {
    from_first("-" + pack(Failed{error.with_rank(0)}));
    throw;
  }
}

Hello hear_first(const Watchdog::FromFirst& from_first) {
  const std::string text = from_first("");
  if (text.starts_with('-')) throw unpack_failed(text.substr(1)).error;
  return unpack_hello(text.substr(1));
}

void send_all(Meeting& meeting, Tell type, const std::string& body) {
  for (auto& [rank, link] : meeting.links) link.send(static_cast<std::uint32_t>(type), body);
}

Meeting receive_all(Member self, const World& world, const WatchdogOptions& options,
                    const Watchdog::FromFirst& from_first) {
  const std::string token = make_token();
  const Listener listener = open_listener(self, token, world, options, from_first);
  Meeting meeting;
  meeting.members.resize(static_cast<std::size_t>(world.size));
  meeting.members[0] = self;
  const Deadline deadline(options.timeout);
  try {
    Host(listener, token, world.size).receive(1, deadline, meeting);
    send_all(meeting, Tell::roster, pack(meeting.members));
    for (auto& [rank, link] : meeting.links) {
      if (!expect(link, Tell::ready, deadline)) fail_gone(rank, meeting);
    }
  } catch (const Error& error) {
    send_all(meeting, Tell::failure, pack(Failed{error}));
    throw;
  }
  send_all(meeting, Tell::go, "");
  meeting.interface = came_in_by(meeting.links.rbegin()->second, listener);
  return meeting;
}

std::vector<Member> take_roster(MessageLink& first, const Deadline& deadline, int size) {
  const auto body = expect(first, Tell::roster, deadline);
  if (!body) {
    throw Error(ErrorKind::communication, "meeting: it does not say who takes part").with_rank(0);
  }
  std::vector<Member> members = unpack_members(*body);
  CONVOY_DCHECK(members.size() == static_cast<std::size_t>(size),
                "meeting: {} processes are told, expected {}", members.size(), size);
  return members;
}

Meeting visit_first(Member self, const World& world, const WatchdogOptions& options,
                    const Watchdog::FromFirst& from_first) {
  const Hello first = hear_first(from_first);
  const Deadline deadline(options.timeout);
  std::optional<Listener> listener;
  if (world.rank == 1 && world.size > 2) listener.emplace(own_interfaces(world, options));
  if (listener) self.endpoints = listener->endpoints();
  const Hello hello = {first.token, self};
  MessageLink link = visit(0, first.member.endpoints, hello, deadline);
  Meeting meeting;
  meeting.members = take_roster(link, deadline, world.size);
  const auto at_first = meeting.links.emplace(0, std::move(link)).first;
  try {
    if (listener) Host(*listener, first.token, world.size).receive(2, deadline, meeting);
    if (world.rank > 1) {
      meeting.links.emplace(1, visit(1, meeting.members[1].endpoints, hello, deadline));
    }
  } catch (const Error& error) {
    at_first->second.send(static_cast<std::uint32_t>(Tell::failure), pack(Failed{error}));
    throw;
  }
  at_first->second.send(static_cast<std::uint32_t>(Tell::ready), "");
  if (!expect(at_first->second, Tell::go, deadline)) fail_gone(0, meeting);
  return meeting;
}

}  // namespace

Meeting meet(Member self, const World& world, const WatchdogOptions& options,
             const Watchdog::FromFirst& from_first) {
  if (world.size == 1) return {{}, {std::move(self)}, ""};
  CONVOY_DCHECK(from_first, "watchdog: {} processes, and no way to tell where to meet", world.size);
  return world.rank == 0 ? receive_all(std::move(self), world, options, from_first)
                         : visit_first(std::move(self), world, options, from_first);
}

}  // namespace convoy
