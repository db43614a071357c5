// What watchdogs tell each other, and how it is packed: numbers as 8 bytes, little endian; texts as
// a length and bytes.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "comm/sockets.h"
#include "comm/verdict.h"

namespace convoy {

enum class Tell : std::uint32_t {
  hello = 1,  // a process introduces itself
  welcome,    // and is known
  roster,     // all members
  ready,      // to process 0: all connections stand
  go,         // of process 0: all are ready
  report,     // at least each second: what the workers do
  word,       // how a process ended: its own last word, or what a neighbour saw
  failure,    // to the judge: a process cannot go on
  verdict,    // of the judge: the first failure of the job
  goodbye,    // a process leaves, as all do at the end
};

/// A process, as the others know it.
struct Member {
  int rank = 0;
  int first_worker = 0;
  int workers = 1;
  long pid = 0;
  std::string host;
  std::string pid_space;            ///< equal for processes that see the same process numbers
  std::vector<Endpoint> endpoints;  ///< where it listens, if it does
};

struct Hello {
  std::string token;  ///< of the job
  Member member;
};

struct Word {
  int rank = 0;
  Ending ending;
};

/// A failure and the process that says it to the user: `owner`, or the judge where that is -1.
struct Failed {
  Error error;
  int owner = -1;
};

constexpr std::size_t kWordBytes = 24;

std::string pack(const Hello& hello);
std::string pack(const std::vector<Member>& members);
std::string pack(const std::vector<Progress>& reports);
std::string pack(const Failed& failed);
/// Allocates nothing: signal handlers call it.
std::array<char, kWordBytes> pack(const Word& word);

// `communication` where the body is cut short, too long or makes no sense.
Hello unpack_hello(const std::string& body);
std::vector<Member> unpack_members(const std::string& body);
std::vector<Progress> unpack_reports(const std::string& body);
Failed unpack_failed(const std::string& body);
Word unpack_word(const std::string& body);

}  // namespace convoy
