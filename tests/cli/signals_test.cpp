#include "cli/signals.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "tests/cli/cli_test.h"

using namespace convoy::cli;

namespace {

/// The exit code of a child that runs `body`; -1 if a signal ended it.
template <class Body>
int child_code(Body body) {
  pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    ::close(STDOUT_FILENO);
    body();
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Sends `signal` to this process; its handler has run, or ended the process, when this returns.
/// raise() alone promises that, but ThreadSanitizer puts handlers off: in the child of a process
/// with threads, which it does not follow, to the next atomic operation.
void send_to_self(int signal) {
  ::raise(signal);
  std::atomic<int> place{0};
  place.store(1);
}

}  // namespace

TEST_CASE("without a run, signals leave at once") {
  for (auto [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 143}}) {
    INFO("signal " << signal);
    CHECK(child_code([signal = signal] {
            install_signals();
            send_to_self(signal);
          }) == code);
  }
}

TEST_CASE("in a run, SIGTERM and SIGUSR1 only ask to stop; Ctrl-C still leaves") {
  for (int signal : {SIGTERM, SIGUSR1}) {
    CHECK(child_code([signal] {
            install_signals();
            StopOnSignal stop;
            if (stop.request().requested()) ::_exit(1);
            send_to_self(signal);
            send_to_self(signal);  // a second one does no harm
            bool named =
                stop.signal_name() == std::string(signal == SIGTERM ? "SIGTERM" : "SIGUSR1");
            ::_exit(stop.request().requested() && named ? 0 : 2);
          }) == 0);
  }
  CHECK(child_code([] {
          install_signals();
          StopOnSignal stop;
          send_to_self(SIGINT);
        }) == 130);
}

TEST_CASE("a reader that has gone is an error of write, not a signal") {
  CHECK(child_code([] {
          install_signals();
          int ends[2] = {};
          if (::pipe(ends) != 0) ::_exit(1);
          ::close(ends[0]);
          ::_exit(::write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2);
        }) == 0);
}

TEST_CASE("a file-size limit is an error of write, not a signal") {
  TemporaryFolder folder;
  std::string path = folder.path("out");
  CHECK(child_code([&] {
          install_signals();
          rlimit limit = {4, 4};
          ::setrlimit(RLIMIT_FSIZE, &limit);
          std::FILE* file = std::fopen(path.c_str(), "w");
          bool failed = !file || std::fputs("123456789", file) < 0 || std::fflush(file) != 0;
          ::_exit(failed ? 0 : 1);
        }) == 0);
}
