#include "comm/watchdog_messages.h"

#include <bit>
#include <limits>

#include "kernels/base/error.h"

namespace convoy {
namespace {

void put(char* place, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) place[i] = static_cast<char>(value >> (8 * i));
}

class Packer {
 public:
  Packer& number(std::int64_t value) {
    char bytes[8];
    put(bytes, static_cast<std::uint64_t>(value));
    body_.append(bytes, sizeof bytes);
    return *this;
  }
  Packer& real(double value) { return number(std::bit_cast<std::int64_t>(value)); }
  Packer& text(const std::string& value) {
    number(static_cast<std::int64_t>(value.size()));
    body_ += value;
    return *this;
  }
  std::string done() { return std::move(body_); }

 private:
  std::string body_;
};

class Unpacker {
 public:
  explicit Unpacker(const std::string& body) : body_(body) {}

  std::int64_t number() {
    need(8);
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(body_[place_ + i])) << (8 * i);
    }
    place_ += 8;
    return static_cast<std::int64_t>(value);
  }
  /// A number from `low` to `high`.
  std::int64_t number(std::int64_t low, std::int64_t high) {
    const std::int64_t value = number();
    if (value < low || value > high) {
      CONVOY_FAIL(communication, "message: {} is out of range, expected {} to {}", value, low,
                  high);
    }
    return value;
  }
  int rank() { return static_cast<int>(number(-1, 1 << 24)); }
  double real() { return std::bit_cast<double>(number()); }
  std::string text() {
    const std::uint64_t size = static_cast<std::uint64_t>(number());
    need(size);
    std::string value = body_.substr(place_, size);
    place_ += size;
    return value;
  }
  /// How many entries of at least `bytes` follow.
  std::int64_t count(std::int64_t bytes) {
    return number(0, static_cast<std::int64_t>(body_.size() - place_) / bytes);
  }
  void end() const {
    if (place_ == body_.size()) return;
    CONVOY_FAIL(communication, "message: {} bytes follow its end", body_.size() - place_);
  }

 private:
  void need(std::uint64_t bytes) const {
    if (bytes <= body_.size() - place_) return;
    CONVOY_FAIL(communication, "message: {} bytes are needed, {} are left", bytes,
                body_.size() - place_);
  }

  const std::string& body_;
  std::size_t place_ = 0;
};

void pack(Packer& out, const Member& member) {
  out.number(member.rank).number(member.first_worker).number(member.workers).number(member.pid);
  out.text(member.host).text(member.pid_space);
  out.number(static_cast<std::int64_t>(member.endpoints.size()));
  for (const Endpoint& one : member.endpoints) {
    out.text(one.interface.name).text(one.interface.address).number(one.port);
  }
}

Member unpack_member(Unpacker& in) {
  Member member;
  member.rank = in.rank();
  member.first_worker = in.rank();
  member.workers = in.rank();
  member.pid = static_cast<long>(in.number());
  member.host = in.text();
  member.pid_space = in.text();
  for (std::int64_t left = in.count(24); left > 0; --left) {
    Endpoint one;
    one.interface.name = in.text();
    one.interface.address = in.text();
    one.port = static_cast<std::uint16_t>(in.number(0, 65535));
    member.endpoints.push_back(one);
  }
  return member;
}

Progress unpack_progress(Unpacker& in) {
  Progress progress;
  progress.activity = static_cast<Activity>(in.number(0, static_cast<int>(Activity::finished)));
  progress.step = in.number();
  progress.collective = in.number();
  progress.beats = static_cast<std::uint64_t>(in.number());
  progress.since = in.real();
  progress.step_seconds = in.real();
  progress.wait_in = static_cast<WaitIn>(in.number(0, static_cast<int>(WaitIn::message)));
  for (char& letter : progress.at.op) letter = static_cast<char>(in.number(0, 127));
  progress.at.stage = static_cast<std::uint16_t>(in.number(0, 65535));
  progress.at.micro_batch =
      static_cast<std::int32_t>(in.number(-1, std::numeric_limits<std::int32_t>::max()));
  progress.kind = static_cast<int>(in.number(0, std::numeric_limits<std::int32_t>::max()));
  return progress;
}

}  // namespace

std::string pack(const Hello& hello) {
  Packer out;
  out.text(hello.token);
  pack(out, hello.member);
  return out.done();
}

Hello unpack_hello(const std::string& body) {
  Unpacker in(body);
  Hello hello;
  hello.token = in.text();
  hello.member = unpack_member(in);
  in.end();
  return hello;
}

std::string pack(const std::vector<Member>& members) {
  Packer out;
  out.number(static_cast<std::int64_t>(members.size()));
  for (const Member& member : members) pack(out, member);
  return out.done();
}

std::vector<Member> unpack_members(const std::string& body) {
  Unpacker in(body);
  std::vector<Member> members;
  for (std::int64_t left = in.count(56); left > 0; --left) members.push_back(unpack_member(in));
  in.end();
  return members;
}

std::string pack(const std::vector<Progress>& reports) {
  Packer out;
  out.number(static_cast<std::int64_t>(reports.size()));
  for (const Progress& one : reports) {
    out.number(static_cast<int>(one.activity)).number(one.step).number(one.collective);
    out.number(static_cast<std::int64_t>(one.beats)).real(one.since).real(one.step_seconds);
    out.number(static_cast<int>(one.wait_in));
    for (char letter : one.at.op) out.number(letter);
    out.number(one.at.stage).number(one.at.micro_batch).number(one.kind);
  }
  return out.done();
}

std::vector<Progress> unpack_reports(const std::string& body) {
  Unpacker in(body);
  std::vector<Progress> reports;
  for (std::int64_t left = in.count(96); left > 0; --left) reports.push_back(unpack_progress(in));
  in.end();
  return reports;
}

std::string pack(const Failed& failed) {
  const Error& error = failed.error;
  Packer out;
  out.number(static_cast<int>(error.kind())).number(error.rank().value_or(-1));
  out.text(error.text()).text(error.place()).number(failed.owner);
  return out.done();
}

Failed unpack_failed(const std::string& body) {
  Unpacker in(body);
  const auto kind = static_cast<ErrorKind>(in.number(1, static_cast<int>(ErrorKind::resource)));
  const int rank = in.rank();
  const std::string text = in.text();
  const std::string place = in.text();
  const int owner = in.rank();
  in.end();
  return {Error(kind, text, place, rank < 0 ? std::optional<int>() : rank), owner};
}

std::array<char, kWordBytes> pack(const Word& word) {
  std::array<char, kWordBytes> body{};
  put(&body[0], static_cast<std::uint64_t>(word.rank));
  put(&body[8], static_cast<std::uint64_t>(word.ending.how));
  put(&body[16], static_cast<std::uint64_t>(word.ending.value));
  return body;
}

Word unpack_word(const std::string& body) {
  Unpacker in(body);
  Word word;
  word.rank = in.rank();
  word.ending.how =
      static_cast<Ending::How>(in.number(0, static_cast<int>(Ending::How::exception)));
  word.ending.value = static_cast<int>(in.number(0, 255));
  in.end();
  return word;
}

}  // namespace convoy
