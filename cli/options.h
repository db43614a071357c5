// What a command was asked for: the settings of a run and what concerns the program alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/settings.h"

namespace convoy::cli {

/// Where a setting was given; later ones win.
enum class Source { config_file, variable, flag };

struct Given {
  std::string name;  ///< of the flag
  Source source = Source::flag;
};

struct Options {
  Settings settings;
  bool json = false;
  bool logits = false;                  // predict
  std::optional<std::int64_t> repeats;  // bench: 3; bench allreduce: 15
  std::vector<std::int64_t> bytes;      // bench allreduce; empty: its sizes
  std::vector<std::int64_t> splits;     // bench split; empty: those that fit the batch
  std::optional<std::int64_t> ranks;    // launch
  std::string cluster;                  // plan: file
  std::string hosts;                    // launch: file
  std::string iface;                    // launch
  std::int64_t restarts = 0;            // launch
  bool dry_run = false;                 // launch
  std::string output;                   // report: file to write; empty: beside the metrics
  std::string config;                   // --config FILE
  std::vector<std::string> operands;
  std::vector<Given> given;        // what was set anywhere, in order
  std::vector<std::string> notes;  // to print once nothing can be wrong with the settings any more
};

}  // namespace convoy::cli
