#include "comm/launch/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "comm/launch/failure_lines.h"
#include "comm/sockets.h"
#include "comm/verdict.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr double kGrace = 5;         // seconds from SIGTERM to SIGKILL
constexpr double kAfterFailure = 5;  // for the ranks to end by themselves
constexpr double kAskAgain = 2;      // a rank may not have been there yet
constexpr double kNever = 1e18;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of a process that has not ended; zombies have.
struct Kin {
  pid_t parent = -1;
  pid_t session = -1;
};

Kin kin_of(const char* pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  char state = 'Z';
  int parent = 0, group = 0, session = -1;
  std::sscanf(line.c_str() + name_end + 1, " %c %d %d %d", &state, &parent, &group, &session);
  return state == 'Z' ? Kin() : Kin{parent, session};
}

/// The processes of `session`, and those that have left it and lost their parent: they are ours.
std::vector<pid_t> members(pid_t session) {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const bool number = entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
    const Kin kin = number ? kin_of(entry->d_name) : Kin();
    const bool ours = kin.session == session || kin.parent == ::getpid();
    if (ours) found.push_back(std::atoi(entry->d_name));
  }
  return found;
}

/// Signals come in as reads of a descriptor while this lives.
class SignalInbox {
 public:
  SignalInbox() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    inbox_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalInbox() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  int fd() const { return inbox_.get(); }
  const sigset_t& before() const { return before_; }
  /// The next signal, 0 if there is none.
  int next() const {
    signalfd_siginfo info = {};
    const bool got = ::read(fd(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
    return got ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_;
  Descriptor inbox_;
};

/// The life of the child up to the command.
[[noreturn]] void become(std::vector<char*>& words, int error_pipe, const sigset_t& mask,
                         pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // nothing outlives the launcher
  if (::getppid() != parent) ::_exit(1);
  ::dup2(error_pipe, STDERR_FILENO);
  if (::isatty(STDIN_FILENO)) {  // a terminal is not for another session to read
    const int none = ::open("/dev/null", O_RDONLY);
    ::dup2(none, STDIN_FILENO);
  }
  for (int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvp(words[0], words.data());
  const std::string text =
      fmt::format("convoy: error: usage: launch: {}: {}\n", words[0], std::strerror(errno));
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(static_cast<int>(ErrorKind::usage));
}

class Job {
 public:
  explicit Job(const std::vector<std::string>& command) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what it leaves behind comes to us
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) CONVOY_FAIL(resource, "pipe: {}", std::strerror(errno));
    errors_ = Descriptor(ends[0]);
    const Descriptor theirs(ends[1]);
    std::vector<std::string> copy = command;
    std::vector<char*> words;
    for (std::string& word : copy) words.push_back(word.data());
    words.push_back(nullptr);
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) CONVOY_FAIL(resource, "fork: {}", std::strerror(errno));
    if (child_ == 0) become(words, theirs.get(), inbox_.before(), parent);
  }

  JobEnd run() {
    while (!ended_) {
      wait();
      while (int signal = inbox_.next()) take(signal);
      copy_errors();
      reap();
      escalate();
    }
    sweep();
    bury();
    drain();
    end_.failure = lines_.first();
    end_.failure_is_last = lines_.first_is_last();
    return end_;
  }

 private:
  void wait() {
    pollfd waits[] = {{inbox_.fd(), POLLIN, 0}, {errors_open_ ? errors_.get() : -1, POLLIN, 0}};
    ::poll(waits, 2, 100);
  }

  void take(int signal) {
    if (signal == SIGCHLD) return;
    if (signal == SIGINT) {
      interrupt();
      return;
    }
    if (end_.asked == 0) end_.asked = SIGTERM;
    ask_at_ = now();
  }

  /// The ranks of this host leave at once, and mpirun ends those of others. It is not asked itself:
  /// it would give SIGTERM to its ranks, which save then.
  void interrupt() {
    end_.asked = SIGINT;
    const std::vector<pid_t> all = members(child_);
    for (pid_t pid : all) {
      if (pid != child_) ::kill(pid, SIGINT);
    }
    if (all.size() < 2) ::kill(child_, SIGTERM);  // its ranks are all elsewhere, or not there yet
    kill_at_ = std::min(kill_at_, now() + kGrace);
  }

  /// To stderr as it comes.
  void copy_errors() {
    char buffer[16384];
    pollfd ready = {errors_.get(), POLLIN, 0};
    while (errors_open_ && ::poll(&ready, 1, 0) == 1) {
      const ssize_t count = ::read(errors_.get(), buffer, sizeof buffer);
      if (count <= 0) {
        errors_open_ = false;
        break;
      }
      [[maybe_unused]] const ssize_t ignored =
          ::write(STDERR_FILENO, buffer, static_cast<std::size_t>(count));
      lines_.take({buffer, static_cast<std::size_t>(count)});
    }
    if (lines_.first() && terminate_at_ == kNever) {
      terminate_at_ = now() + kAfterFailure;
      kill_at_ = std::min(kill_at_, terminate_at_ + 3);
    }
  }

  void reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != child_) continue;
      ended_ = true;
      end_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }

  void escalate() {
    if (ended_) return;
    const double time = now();
    if (time >= ask_at_) {
      ::kill(child_, SIGUSR1);
      ask_at_ = time + kAskAgain;
    }
    if (time >= terminate_at_) {
      ::kill(child_, SIGTERM);
      terminate_at_ = time + kGrace;
    }
    if (time >= kill_at_) {
      for (pid_t pid : members(child_)) ::kill(pid, SIGKILL);
    }
  }

  /// Ends what the command has left behind.
  void sweep() {
    const double patience = now() + (end_.code == 0 ? kGrace : kGrace / 5);
    bool asked = false;
    for (std::vector<pid_t> left; !(left = members(child_)).empty();) {
      const bool late = now() >= patience;
      for (pid_t pid : left) {
        if (late || !asked) ::kill(pid, late ? SIGKILL : SIGTERM);
      }
      asked = true;
      copy_errors();
      reap();
      ::usleep(20000);
    }
  }

  /// Takes leave of the dead: whoever looks for their numbers finds none.
  void bury() {
    const double patience = now() + 1;
    int status = 0;
    while (now() < patience) {
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0) break;
      if (pid == 0) ::usleep(5000);
    }
  }

  /// The rest of what was written.
  void drain() {
    const double patience = now() + 1;
    while (errors_open_ && now() < patience) {
      copy_errors();
      if (errors_open_) ::usleep(5000);
    }
  }

  SignalInbox inbox_;
  Descriptor errors_;
  pid_t child_ = -1;
  bool errors_open_ = true;
  bool ended_ = false;
  double ask_at_ = kNever;        // when SIGUSR1 is sent (again)
  double terminate_at_ = kNever;  // SIGTERM to mpirun
  double kill_at_ = kNever;       // SIGKILL to all
  FailureLines lines_;
  JobEnd end_;
};

}  // namespace

JobEnd run_job(const std::vector<std::string>& command) {
  return Job(command).run();
}

int signal_of(const JobEnd& end) {
  return end.code > 128 && end.code <= 128 + SIGRTMAX ? end.code - 128 : 0;
}

int exit_code(const JobEnd& end) {
  if (end.asked == SIGINT) return 128 + SIGINT;
  // mpirun's code is that of the rank that went first: what others say of its end is an echo.
  if (end.code == 128 + SIGINT || end.code == 128 + SIGTERM) return end.code;
  const std::optional<ErrorKind> kind = end.failure ? kind_of(*end.failure) : std::nullopt;
  if (kind && end.code != 0) return static_cast<int>(*kind);
  if (end.asked != 0 && end.code != 0) return 128 + SIGTERM;
  if (signal_of(end) != 0) return static_cast<int>(ErrorKind::communication);
  return end.code;
}

bool worth_a_restart(const JobEnd& end) {
  return end.asked == 0 && exit_code(end) == static_cast<int>(ErrorKind::communication);
}

std::string cause_of(const JobEnd& end) {
  constexpr std::string_view kStart = "convoy: error: ";
  if (end.failure) return end.failure->substr(kStart.size());
  if (const int signal = signal_of(end)) {
    return "communication: a rank was " + describe(Ending{Ending::How::signal, signal});
  }
  return fmt::format("the first rank to fail ended with code {}", end.code);
}

}  // namespace convoy
