#include "cli/progress_observer.h"

#include <fmt/core.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cli/terminal.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

constexpr double kPlainInterval = 10;  // seconds between lines in a file
constexpr double kBarInterval = 0.1;
constexpr int kUsualColumns = 80;

int columns_of(std::FILE* out) {
  winsize size = {};
  bool known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return b > 0 ? (a + b - 1) / b : 0;
}

}  // namespace

ProgressStyle progress_style(std::FILE* out) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  bool plain = !is_terminal(::fileno(out)) || (no_color && *no_color) ||
               (term && std::strcmp(term, "dumb") == 0);
  return plain ? ProgressStyle::plain : ProgressStyle::bar;
}

ProgressObserver::ProgressObserver(std::FILE* out, std::FILE* messages, ProgressStyle style,
                                   std::string data)
    : out_(out), messages_(messages), style_(style), data_(std::move(data)) {}

ProgressObserver::~ProgressObserver() {
  clear();  // an error's line must not follow a painted one
  std::fflush(out_);
}

void ProgressObserver::on_run(const RunInfo& info) {
  info_ = info;
  line(out_, run_text(info, data_));
  if (info.start_step > 0) {
    line(out_, fmt::format("going on after step {} of {}", info.start_step, info.total_steps));
  }
}

void ProgressObserver::on_step(const StepEvent& event) {
  if (event.epoch != epoch_) {
    epoch_ = event.epoch;
    loss_sum_ = 0;
    loss_images_ = 0;
  }
  pace_.add(event);
  loss_sum_ += event.loss * static_cast<double>(event.images);
  loss_images_ += event.images;
  Standing standing;
  standing.steps_per_epoch = info_.steps_per_epoch;
  standing.step = event.step - (event.epoch - 1) * info_.steps_per_epoch;
  standing.epoch = event.epoch;
  standing.epochs = divide_up(info_.total_steps, info_.steps_per_epoch);
  standing.steps_left = info_.total_steps - event.step;
  standing.loss = loss_images_ > 0 ? loss_sum_ / static_cast<double>(loss_images_) : 0;
  standing.lr = event.lr;
  bool first = event.step == info_.start_step + 1;
  bool last = standing.step == info_.steps_per_epoch || standing.steps_left == 0;
  double interval = style_ == ProgressStyle::bar ? kBarInterval : kPlainInterval;
  if (first || last || pace_.elapsed() - shown_at_ >= interval) show(standing, last);
}

void ProgressObserver::show(const Standing& standing, bool last_of_epoch) {
  std::string text = standing_line(standing, pace_);
  if (style_ == ProgressStyle::plain) {
    line(out_, text);
  } else {
    paint(bar_line(standing, text, columns_of(out_)));
    if (last_of_epoch) {
      std::fputc('\n', out_);  // the epoch's last state stays
      painted_ = false;
    }
  }
  shown_at_ = pace_.elapsed();
}

void ProgressObserver::on_eval_progress(std::int64_t images, std::int64_t of) {
  if (style_ != ProgressStyle::bar) return;
  paint(fmt::format("evaluating  {}/{}", grouped(images), grouped(of)));
}

void ProgressObserver::on_eval(const EvalEvent& event) {
  if (event.top1 >= best_.top1) best_ = event;
  std::string tops;  // rows of numbers have no classes
  if (!std::isnan(event.top1)) {
    tops = fmt::format(", top-1 {}, top-5 {}", percent(event.top1), percent(event.top5));
  }
  line(out_, fmt::format("epoch {}: test loss {:.4f}{} of {} images", event.epoch, event.loss, tops,
                         grouped(event.images)));
}

void ProgressObserver::on_checkpoint(const std::string& folder) {
  line(out_, "saved " + folder);
}

void ProgressObserver::on_note(const std::string& text) {
  line(messages_, "convoy: " + text);
}

void ProgressObserver::on_warning(const std::string& text) {
  line(messages_, "convoy: warning: " + text);
}

void ProgressObserver::on_end(const EndEvent& event) {
  std::string speed = pace_.rate() > 0 ? fmt::format(", {} images/s", rate(pace_.rate())) : "";
  line(out_,
       fmt::format("trained to step {} in {}{}", event.steps, duration(event.seconds), speed));
  if (best_.images > 0) {
    line(out_, fmt::format("best top-1 {} in epoch {}", percent(best_.top1), best_.epoch));
  }
  if (!event.checkpoint.empty()) line(out_, "checkpoint " + event.checkpoint);
  line(out_, "weights hash " + event.weights_hash);
}

void ProgressObserver::paint(const std::string& text) {
  std::fprintf(out_, "\r%s\033[K", text.c_str());
  flush(out_);
  painted_ = true;
}

void ProgressObserver::clear() {
  if (painted_) std::fputs("\r\033[K", out_);
  painted_ = false;
}

void ProgressObserver::line(std::FILE* file, const std::string& text) {
  clear();
  if (file != out_) flush(out_);
  std::fprintf(file, "%s\n", text.c_str());
  flush(file);
}

void ProgressObserver::flush(std::FILE* file) {
  const bool written = std::fflush(file) == 0 && !std::ferror(file);
  if (written || file != out_) return;
  CONVOY_FAIL(resource, "cannot write to stdout: {}", std::strerror(errno));
}

void MessageObserver::on_note(const std::string& text) {
  std::fprintf(stderr, "convoy: %s\n", text.c_str());
}

void MessageObserver::on_warning(const std::string& text) {
  std::fprintf(stderr, "convoy: warning: %s\n", text.c_str());
}

std::unique_ptr<Observer> make_display(bool json, const std::string& data) {
  if (json) return std::make_unique<MessageObserver>();
  return std::make_unique<ProgressObserver>(stdout, stderr, progress_style(stdout), data);
}

}  // namespace convoy::cli
