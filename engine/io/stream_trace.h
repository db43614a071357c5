// A trace of what devices run and when, for programs of one's own: StreamTrace trace("t.json",
// {"cpu:0", "cpu:1"}). Opened in chrome://tracing or ui.perfetto.dev, each device is a row of
// spans.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/base/device.h"

namespace convoy {

/// The bare name in the signature of a function: "conv2d_forward".
std::string kernel_name(const std::string& signature);

/// Records the kernels and copies that the default streams of some devices run, while it lives, and
/// writes them as Chrome trace JSON. Streams that nobody traces pay nothing. One at a time for each
/// device.
class StreamTrace {
 public:
  /// `usage` for a device that is absent.
  StreamTrace(std::string path, std::vector<Device> devices);
  /// Closes; an error goes to stderr.
  ~StreamTrace();
  StreamTrace(const StreamTrace&) = delete;
  StreamTrace& operator=(const StreamTrace&) = delete;

  /// What is queued from now on is called a part of `name`: the category of its spans.
  void phase(const std::string& name);
  /// Ends the recording, waits for what is queued, and writes the file. `resource` if that fails.
  void close();

 private:
  struct Log;

  std::string path_;
  std::vector<Device> devices_;
  std::shared_ptr<Log> log_;  // null: closed
};

}  // namespace convoy
