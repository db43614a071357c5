#include "cli/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "cli/json_lines.h"
#include "cli/whole_file.h"

namespace convoy::cli {
namespace {

constexpr std::size_t kMostBoxes = 200'000;
constexpr int kTracks = 4;
constexpr int kLanes = 100;  // numbers of the further tracks of a kind

/// Whole nanoseconds, so that boxes that touch touch in the file too.
struct Box {
  const Span* span;
  std::int64_t step;
  std::int64_t begin;
  std::int64_t end;
};

struct Worker {
  int replica = 0;
  std::set<int> stages;
  std::vector<Box> boxes;
};

std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

/// Number of a track within its worker: compute 1, send 101, receive 201, ...
int track_id(SpanTrack track, std::size_t lane) {
  return static_cast<int>(track) * kLanes + static_cast<int>(lane) + 1;
}

/// The boxes that enclose a time on one track, innermost last.
class Lane {
 public:
  /// Whether `box`, no earlier than those before, stands apart from them or within them.
  bool takes(const Box& box) {
    while (!open_.empty() && open_.back() <= box.begin) open_.pop_back();
    return open_.empty() || box.end <= open_.back();
  }
  void add(const Box& box) { open_.push_back(box.end); }

 private:
  std::vector<std::int64_t> open_;
};

/// A box and its worker.
struct Place {
  int worker = 0;
  const Box* box = nullptr;
};

/// A message of a step by its send.
struct MessageKey {
  std::int64_t step;
  int replica;
  Instruction send;

  bool operator<(const MessageKey& other) const { return parts() < other.parts(); }
  std::tuple<std::int64_t, int, ScheduleOp, int, int> parts() const {
    return {step, replica, send.op, send.stage, send.micro_batch};
  }
};

/// The send whose message is ready at the end of a box: of a send's own box (`waits`), or of what
/// computed it.
std::optional<Instruction> sent_by(const Span& span, bool waits) {
  Instruction send = span.instruction;
  if (waits && span.track == SpanTrack::send && sends(send.op)) return send;
  if (waits || span.track != SpanTrack::compute) return {};
  if (span.state == WorkerState::forward) {
    send.op = ScheduleOp::send_activation;
  } else if (span.state == WorkerState::backward_input) {
    send.op = ScheduleOp::send_gradient;
  } else {
    return {};
  }
  return send;
}

class Writer {
 public:
  explicit Writer(const SpansEvent& event);
  std::string text() const;

 private:
  void collect(const StepSpans& step);
  void write_worker(int number, Worker& worker);
  void name(int worker, const char* what, int track, const std::string& name, int place);
  void write_box(int worker, int track, const Box& box);
  void write_flows();
  void write_flow(int id, const Place& from, const Place& to);
  void add(const JsonObject& event);

  const SpansEvent& event_;
  double origin_ = 0;
  std::size_t steps_ = 0;
  std::size_t boxes_ = 0;
  std::map<int, Worker> workers_;
  std::map<const Span*, int> tracks_;
  std::string events_;
};

Writer::Writer(const SpansEvent& event) : event_(event) {
  if (!event.steps.empty()) origin_ = event.steps.front().begin;
  for (const StepSpans& step : event.steps) {
    for (const WorkerSpans& worker : step.workers) boxes_ += worker.measured.size();
    if (boxes_ > kMostBoxes && steps_ > 0) break;
    collect(step);
    ++steps_;
  }
  for (auto& [number, worker] : workers_) write_worker(number, worker);
  write_flows();
}

void Writer::collect(const StepSpans& step) {
  const auto nanoseconds = [this](double time) {
    return std::max<std::int64_t>(std::llround((time - origin_) * 1e9), 0);
  };
  for (const WorkerSpans& spans : step.workers) {
    Worker& worker = workers_[spans.worker];
    worker.replica = spans.replica;
    for (const Span& span : spans.measured) {
      worker.boxes.push_back({&span, step.step, nanoseconds(span.begin), nanoseconds(span.end)});
      if (span.state == WorkerState::forward) worker.stages.insert(span.instruction.stage);
    }
  }
}

void Writer::add(const JsonObject& event) {
  events_ += (events_.empty() ? "\n" : ",\n") + event.text();
}

void Writer::name(int worker, const char* what, int track, const std::string& name, int place) {
  const auto tell = [&](const std::string& key, const JsonObject& value) {
    JsonObject event{{"ph", "M"}, {"name", what + key}, {"pid", worker + 1}};
    if (track > 0) event.add("tid", track);
    add(event.add("args", value));
  };
  tell("_name", {{"name", name}});
  tell("_sort_index", {{"sort_index", place}});
}

void Writer::write_worker(int number, Worker& worker) {
  name(number, "process", 0,
       fmt::format("worker {} (replica {}, stage {})", number, worker.replica,
                   fmt::join(worker.stages, ", ")),
       number);
  // Of boxes that begin together the longest first: it may hold the others.
  std::stable_sort(worker.boxes.begin(), worker.boxes.end(), [](const Box& a, const Box& b) {
    return std::tuple(a.begin, -a.end) < std::tuple(b.begin, -b.end);
  });
  for (int i = 0; i < kTracks; ++i) {
    const auto track = static_cast<SpanTrack>(i);
    std::vector<Lane> lanes(1);
    for (const Box& box : worker.boxes) {
      if (box.span->track != track) continue;
      auto lane = std::find_if(lanes.begin(), lanes.end(), [&](Lane& l) { return l.takes(box); });
      if (lane == lanes.end()) lane = lanes.insert(lanes.end(), Lane());
      lane->add(box);
      write_box(number, track_id(track, static_cast<std::size_t>(lane - lanes.begin())), box);
    }
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const int id = track_id(track, lane);
      const std::string more = lane > 0 ? fmt::format(" {}", lane + 1) : "";
      name(number, "thread", id, kTrackNames[i] + more, id);
    }
  }
}

void Writer::write_box(int worker, int track, const Box& box) {
  tracks_[box.span] = track;
  const Instruction& instruction = box.span->instruction;
  JsonObject event{{"ph", "X"},
                   {"name", describe(*box.span)},
                   {"cat", kStateNames[static_cast<int>(box.span->state)]},
                   {"pid", worker + 1},
                   {"tid", track}};
  event.add_raw("ts", microseconds(box.begin)).add_raw("dur", microseconds(box.end - box.begin));
  add(event.add("args", JsonObject{{"step", box.step},
                                   {"stage", instruction.stage},
                                   {"micro_batch", instruction.micro_batch}}));
}

// An arrow from where each message was ready to where its receiver had it. A worker that hands a
// message over without waiting has no box for the send: it was ready when its box was computed.
void Writer::write_flows() {
  std::map<MessageKey, Place> sent;
  std::map<MessageKey, Place> received;
  for (const bool waits : {false, true}) {
    for (const auto& [number, worker] : workers_) {
      for (const Box& box : worker.boxes) {
        const auto send = sent_by(*box.span, waits);
        if (send) sent[{box.step, worker.replica, *send}] = {number, &box};
        const Instruction& of = box.span->instruction;
        if (box.span->track != SpanTrack::receive || !receives(of.op)) continue;
        received[{box.step, worker.replica, counterpart(of)}] = {number, &box};
      }
    }
  }
  int id = 0;
  for (const auto& [key, to] : received) {
    const auto from = sent.find(key);
    if (from != sent.end()) write_flow(++id, from->second, to);
  }
}

void Writer::write_flow(int id, const Place& from, const Place& to) {
  const auto add_end = [&](JsonObject event, const Place& place, std::int64_t time) {
    event.add("id", id).add("cat", "message").add("name", "message");
    event.add("pid", place.worker + 1).add("tid", tracks_.at(place.box->span));
    add(event.add_raw("ts", microseconds(time)));
  };
  add_end({{"ph", "s"}}, from, from.box->end);
  add_end({{"ph", "f"}, {"bp", "e"}}, to, std::max(to.box->end, from.box->end));
}

std::string Writer::text() const {
  JsonObject about{{"program", "convoy " CONVOY_VERSION},
                   {"steps", steps_},
                   {"steps_left_out", event_.steps.size() - steps_},
                   {"clock_error_s", event_.clock_error_s}};
  if (steps_ > 0) {
    about.add("first_step", event_.steps.front().step)
        .add("last_step", event_.steps[steps_ - 1].step);
  }
  return "{\"displayTimeUnit\":\"ms\",\"otherData\":" + about.text() + ",\"traceEvents\":[" +
         events_ + "\n]}\n";
}

}  // namespace

std::string trace_json(const SpansEvent& event) {
  return Writer(event).text();
}

void TraceObserver::on_spans(const SpansEvent& event) {
  write_whole_file(path_, trace_json(event));
}

}  // namespace convoy::cli
