// What a watchdog knows of the processes of its job: the connections to them, what they report, and
// how they end. For the watchdog's thread alone.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/verdict.h"
#include "comm/watchdog_endings.h"
#include "comm/watchdog_meeting.h"
#include "comm/watchdog_messages.h"

namespace convoy {

/// What came in that asks for a decision.
struct Heard {
  std::optional<Failed> failure;  ///< of another process, to the judge
  std::optional<Failed> verdict;  ///< of the judge
  std::optional<Failed> damage;   ///< a connection carries what makes no sense
};

class Peers {
 public:
  Peers(Meeting meeting, int self, double now);

  /// Reads what has come over all connections and from the system.
  Heard read(double now);
  /// What the own workers do, to all. Those who have fallen silent are told less, so that their
  /// buffers do not fill up.
  void report(const std::vector<Progress>& reports, double now);
  /// What the own workers do, for the judge in this process.
  void note_own(const std::vector<Progress>& reports, double now);
  void send(int rank, Tell type, const std::string& body);
  void send_all(Tell type, const std::string& body);
  /// This process leaves, as all do at the end.
  void say_goodbye();
  bool said_goodbye() const { return said_goodbye_; }
  /// Sends what is left of earlier messages.
  void flush();
  /// Sees to it that all that was sent arrives, within `seconds`: no connection is closed with
  /// bytes unread.
  void part(double seconds);
  /// Nobody is to blame for the time in which this process itself did not run.
  void forgive(double pause);

  /// Whether it is connected and reports.
  bool healthy(int rank, double now) const;
  bool linked(int rank) const { return meeting_.links.contains(rank); }
  /// Whether all others have said goodbye.
  bool all_left() const;
  /// Those to be judged. While this process leaves, those that have left are done with.
  std::vector<ProcessState> jury() const;
  /// To poll for POLLIN.
  std::vector<int> fds() const;
  /// The sockets alone, open or not.
  std::vector<int> sockets() const;
  /// Whether an ending is still to be asked for.
  bool pending() const { return neighbours_.pending(); }
  /// Where the others came in; on process 0.
  const std::string& interface() const { return meeting_.interface; }

 private:
  void read_link(int rank, MessageLink& link, double now, Heard& heard);
  void take_message(int rank, const Message& message, double now, Heard& heard);
  void take_word(const Word& word, double now);
  void look_at_neighbours(double now);
  ProcessState* find(int rank);

  Meeting meeting_;
  int self_;
  std::vector<ProcessState> states_;  // this process and those that it has a link to, by rank
  std::set<int> leaving_;             // who has said goodbye
  Neighbours neighbours_;
  bool said_goodbye_ = false;
};

}  // namespace convoy
