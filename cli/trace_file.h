// --trace: a window of steps as Chrome trace JSON (chrome://tracing, Perfetto): one process a
// worker, one track each for compute, send, receive and collectives. The file is whole or absent.
#pragma once

#include <string>
#include <utility>

#include "engine/train/observer.h"

namespace convoy::cli {

/// Times are microseconds from the begin of the first step. Boxes of a track nest or stand apart;
/// where they would cross, the later one goes to a further track of that kind. Whole steps up to
/// about 200,000 boxes; otherData says which.
std::string trace_json(const SpansEvent& event);

class TraceObserver : public Observer {
 public:
  explicit TraceObserver(std::string path) : path_(std::move(path)) {}

  void on_spans(const SpansEvent& event) override;

 private:
  std::string path_;
};

}  // namespace convoy::cli
