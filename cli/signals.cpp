#include "cli/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "cli/terminal.h"

namespace convoy::cli {
namespace {

// Handlers take no argument of ours, so this one pointer has to be global.
std::atomic<StopOnSignal*> running{nullptr};

// Known beforehand: a handler may not look at the environment.
std::atomic<bool> on_terminal{false};

void write_text(int file, const char* text, std::size_t size) {
  [[maybe_unused]] ssize_t ignored = ::write(file, text, size);
}

/// Leaves the line of the progress bar, so that the shell's prompt gets its own.
void leave_line() {
  if (on_terminal.load()) write_text(STDOUT_FILENO, "\n", 1);
}

void on_interrupt(int) {
  constexpr char kText[] = "convoy: stopped by Ctrl-C, nothing more is saved\n";
  leave_line();
  write_text(STDERR_FILENO, kText, sizeof kText - 1);
  ::_exit(kExitInterrupt);
}

void on_terminate(int signal) {
  if (StopOnSignal* run = running.load()) {
    run->stop(signal);
    return;
  }
  leave_line();
  ::_exit(kExitTerminated);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void install_signals() {
  on_terminal.store(is_terminal(STDOUT_FILENO));
  handle(SIGINT, on_interrupt);
  handle(SIGTERM, on_terminate);
  handle(SIGUSR1, on_terminate);
  handle(SIGXFSZ, SIG_IGN);
  handle(SIGPIPE, SIG_IGN);
}

StopOnSignal::StopOnSignal() {
  running.store(this);
}
StopOnSignal::~StopOnSignal() {
  running.store(nullptr);
}

void StopOnSignal::stop(int signal) {
  signal_.store(signal);
  request_.request();
}

const char* StopOnSignal::signal_name() const {
  if (signal_.load() == 0) return "";
  return signal_.load() == SIGUSR1 ? "SIGUSR1" : "SIGTERM";
}

}  // namespace convoy::cli
