#include "comm/watchdog_peers.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>

#include "comm/clock.h"

namespace convoy {

Peers::Peers(Meeting meeting, int self, double now)
    : meeting_(std::move(meeting)), self_(self), neighbours_(meeting_.members, self) {
  for (const Member& member : meeting_.members) {
    if (member.rank != self && !linked(member.rank)) continue;
    ProcessState state;
    state.rank = member.rank;
    state.host = member.host;
    state.pid = member.pid;
    state.first_worker = member.first_worker;
    state.heard = now;
    state.link_changed = now;
    states_.push_back(std::move(state));
  }
}

Heard Peers::read(double now) {
  Heard heard;
  for (auto& [rank, link] : meeting_.links) read_link(rank, link, now, heard);
  look_at_neighbours(now);
  return heard;
}

void Peers::read_link(int rank, MessageLink& link, double now, Heard& heard) {
  ProcessState& state = *find(rank);
  if (state.link != LinkState::open) return;
  link.read();
  try {
    while (auto message = link.next()) take_message(rank, *message, now, heard);
  } catch (const Error& error) {
    const std::string text =
        fmt::format("link to rank {}, host {}: {}", rank, state.host, error.text());
    heard.damage = Failed{Error(ErrorKind::communication, text).with_rank(rank)};
    state.link = LinkState::left;
    return;
  }
  if (link.state() == MessageLink::State::open || state.link != LinkState::open) return;
  const bool unanswered = link.state() == MessageLink::State::unanswered;
  state.link = unanswered ? LinkState::unanswered : LinkState::closed;
  if (leaving_.contains(rank)) state.link = LinkState::left;
  state.link_changed = now;
}

void Peers::take_message(int rank, const Message& message, double now, Heard& heard) {
  switch (static_cast<Tell>(message.type)) {
    case Tell::report:
      take_report(*find(rank), unpack_reports(message.body), now);
      break;
    case Tell::word:
      take_word(unpack_word(message.body), now);
      break;
    case Tell::goodbye:
      leaving_.insert(rank);
      break;
    case Tell::failure:
      if (!heard.failure) heard.failure = unpack_failed(message.body);
      break;
    case Tell::verdict:
      if (!heard.verdict) heard.verdict = unpack_failed(message.body);
      break;
    default:
      CONVOY_FAIL(communication, "a message of kind {} came, expected one of a running job",
                  message.type);
  }
}

void Peers::take_word(const Word& word, double now) {
  ProcessState* state = find(word.rank);
  if (!state || leaving_.contains(word.rank) || state->link == LinkState::left) return;
  const bool well = word.ending.how == Ending::How::code && word.ending.value == 0;
  if (said_goodbye_ && well) {  // its goodbye took another way, and longer
    leaving_.insert(word.rank);
    return;
  }
  if (state->ending.how == Ending::How::unknown) state->ending = word.ending;
  if (state->link != LinkState::open) return;
  state->link = LinkState::closed;  // a child of it may still hold the connection open
  state->link_changed = now;
}

void Peers::look_at_neighbours(double now) {
  for (const Word& word : neighbours_.look()) {
    take_word(word, now);
    const auto body = pack(word);
    send_all(Tell::word, std::string(body.begin(), body.end()));
  }
}

void Peers::note_own(const std::vector<Progress>& reports, double now) {
  take_report(*find(self_), reports, now);
}

void Peers::report(const std::vector<Progress>& reports, double now) {
  const std::string body = pack(reports);
  for (auto& [rank, link] : meeting_.links) {
    const double silence = now - find(rank)->heard;
    const bool often = silence < 2 * kSilence || static_cast<int>(silence) % 5 == 0;
    if (often) link.send(static_cast<std::uint32_t>(Tell::report), body);
  }
}

void Peers::send(int rank, Tell type, const std::string& body) {
  meeting_.links.at(rank).send(static_cast<std::uint32_t>(type), body);
}

void Peers::send_all(Tell type, const std::string& body) {
  for (auto& [rank, link] : meeting_.links) link.send(static_cast<std::uint32_t>(type), body);
}

void Peers::say_goodbye() {
  said_goodbye_ = true;
  send_all(Tell::goodbye, "");
}

void Peers::flush() {
  for (auto& [rank, link] : meeting_.links) link.flush();
}

void Peers::part(double seconds) {
  const double end = steady_now() + seconds;
  bool open = !meeting_.links.empty();
  for (bool finished = false; open && steady_now() < end;) {
    bool flushed = true;
    open = false;
    std::vector<pollfd> waits;
    for (auto& [rank, link] : meeting_.links) {
      flushed = link.flush() && flushed;
      link.read();
      open = open || link.state() == MessageLink::State::open;
      if (link.state() == MessageLink::State::open) waits.push_back({link.fd(), POLLIN, 0});
    }
    if (flushed && !finished) {
      finished = true;
      for (auto& [rank, link] : meeting_.links) link.finish();
    }
    ::poll(waits.data(), waits.size(), 10);
  }
}

void Peers::forgive(double pause) {
  for (ProcessState& state : states_) {
    state.heard += pause;
    state.link_changed += pause;
    for (WorkerState& worker : state.workers) worker.changed += pause;
  }
}

bool Peers::healthy(int rank, double now) const {
  return std::any_of(states_.begin(), states_.end(), [&](const ProcessState& state) {
    return state.rank == rank && state.link == LinkState::open && now - state.heard < kSilence;
  });
}

bool Peers::all_left() const {
  return std::all_of(states_.begin(), states_.end(), [&](const ProcessState& state) {
    return state.rank == self_ || state.link == LinkState::left || leaving_.contains(state.rank);
  });
}

std::vector<ProcessState> Peers::jury() const {
  std::vector<ProcessState> all = states_;
  if (said_goodbye_) {
    std::erase_if(all, [](const ProcessState& one) { return one.link == LinkState::left; });
  }
  return all;
}

std::vector<int> Peers::fds() const {
  std::vector<int> found = neighbours_.fds();
  for (const auto& [rank, link] : meeting_.links) {
    if (link.state() == MessageLink::State::open) found.push_back(link.fd());
  }
  return found;
}

std::vector<int> Peers::sockets() const {
  std::vector<int> found;
  for (const auto& [rank, link] : meeting_.links) found.push_back(link.fd());
  return found;
}

ProcessState* Peers::find(int rank) {
  for (ProcessState& state : states_) {
    if (state.rank == rank) return &state;
  }
  return nullptr;
}

}  // namespace convoy
