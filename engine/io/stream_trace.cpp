#include "engine/io/stream_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <span>

#include "engine/io/file.h"
#include "engine/io/text.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "kernels/base/stream_recorder.h"

namespace convoy {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

void write_whole(const std::string& path, const std::string& text) {
  TemporaryPath temporary(path + ".part");
  remove_all(temporary.path());
  FileWriter file(temporary.path());
  file.write(std::as_bytes(std::span(text)));
  file.finish();
  rename_path(temporary.path(), path);
  temporary.keep();
}

}  // namespace

// void convoy::cpu::{anonymous}::fill(convoy::Stream&, ...)    one compiler's
// void convoy::cpu::(anonymous namespace)::fill(Stream &, ...)    another one's
std::string kernel_name(const std::string& signature) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::size_t from = signature.rfind(kAnonymous);
  from = from == signature.npos ? 0 : from + kAnonymous.size();
  const std::size_t end = signature.find('(', from);
  const std::string head = signature.substr(0, end);
  const std::size_t before = head.find_last_of(": &*");
  return before == head.npos ? head : head.substr(before + 1);
}

struct StreamTrace::Log {
  struct Entry {
    StreamSpan span;
    std::string phase;
  };
  // Told by streams of what was queued in one phase.
  struct Phase : StreamRecorder {
    Phase(std::shared_ptr<Log> to, std::string called)
        : log(std::move(to)), name(std::move(called)) {}
    void ran(const StreamSpan& span) override {
      std::lock_guard lock(log->mutex);
      log->entries.push_back({span, name});
    }
    std::shared_ptr<Log> log;
    std::string name;
  };

  std::string json(const std::vector<Device>& devices) const;

  const Clock::time_point start = Clock::now();
  std::mutex mutex;
  std::vector<Entry> entries;
};

std::string StreamTrace::Log::json(const std::vector<Device>& devices) const {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  auto row_of = [&](const Device& device) {
    return std::find(devices.begin(), devices.end(), device) - devices.begin();
  };
  for (const Device& device : devices) {
    text += fmt::format(
        "{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 0, \"tid\": {}, \"args\": "
        "{{\"name\": "
        "{}}}}},\n",
        row_of(device), json_string(to_string(device)));
  }
  for (const Entry& entry : entries) {
    text += fmt::format(
        "{{\"ph\": \"X\", \"name\": {}, \"cat\": {}, \"pid\": 0, \"tid\": {}, \"ts\": {:.3f}, "
        "\"dur\": {:.3f}}},\n",
        json_string(kernel_name(entry.span.kernel)), json_string(utf8_of_bytes(entry.phase)),
        row_of(entry.span.device), microseconds(entry.span.begin - start),
        microseconds(entry.span.end - entry.span.begin));
  }
  text.erase(text.size() - 2);  // the last comma
  return text + "\n]}\n";
}

StreamTrace::StreamTrace(std::string path, std::vector<Device> devices)
    : path_(std::move(path)), devices_(std::move(devices)) {
  CONVOY_CHECK(!devices_.empty(), "StreamTrace: no devices given");
  for (const Device& device : devices_) context(device);  // `usage` if there is none
  log_ = std::make_shared<Log>();
  phase("");
}

StreamTrace::~StreamTrace() {
  try {
    close();
  } catch (const std::exception& error) {
    fmt::print(stderr, "convoy: StreamTrace: {}\n", error.what());
  }
}

void StreamTrace::phase(const std::string& name) {
  CONVOY_CHECK(log_, "StreamTrace: {} is closed", printable(path_));
  const auto recorder = std::make_shared<Log::Phase>(log_, name);
  for (const Device& device : devices_) context(device).default_stream().record_to(recorder);
}

void StreamTrace::close() {
  if (!log_) return;
  const std::shared_ptr<Log> log = std::exchange(log_, nullptr);
  for (const Device& device : devices_) context(device).default_stream().record_to(nullptr);
  // Not synchronize(): a failure of that work is for whoever reads its result.
  for (const Device& device : devices_) context(device).default_stream().record().wait();
  write_whole(path_, log->json(devices_));
}

}  // namespace convoy
