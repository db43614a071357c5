// How the watchdogs of a job find each other: each connects to process 0, which is told to all
// beforehand, and to process 1, which stands in for it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/sockets.h"
#include "comm/watchdog.h"
#include "comm/watchdog_messages.h"

namespace convoy {

struct Meeting {
  std::map<int, MessageLink> links;  ///< by rank: of 0 and 1 to all, of others to these two
  std::vector<Member> members;       ///< all, by rank
  std::string interface;             ///< on process 0: where the others came in
};

/// Takes part in the meeting; errors are those of Watchdog's constructor.
Meeting meet(Member self, const World& world, const WatchdogOptions& options,
             const Watchdog::FromFirst& from_first);

}  // namespace convoy
