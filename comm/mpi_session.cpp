#include "comm/mpi_session.h"

#include <array>
#include <atomic>
#include <utility>

namespace convoy {
namespace {

enum class State { not_started, running, given_up };

std::atomic<State>& state() {
  static std::atomic<State> state{State::not_started};
  return state;
}

bool is_initialized() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}

bool is_finalized() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace

std::string mpi_error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

MpiSession::MpiSession() {
  CONVOY_CHECK(!is_finalized(), "MPI has been finalized: it cannot be started again");
  int level = MPI_THREAD_SINGLE;
  if (is_initialized()) {
    MPI_Query_thread(&level);
  } else {
    CONVOY_MPI(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level));
    ours_ = true;
  }
  CONVOY_CHECK(level == MPI_THREAD_MULTIPLE,
               "MPI runs with thread level {}, expected MPI_THREAD_MULTIPLE ({}): {}", level,
               MPI_THREAD_MULTIPLE, library_version());
}

MpiSession::~MpiSession() {
  if (ours_ && state() != State::given_up && !is_finalized()) MPI_Finalize();
}

MpiSession& MpiSession::start(const World& world) {
  static MpiSession session;
  session.check_world(world);
  State before = State::not_started;
  state().compare_exchange_strong(before, State::running);
  return session;
}

bool MpiSession::runs() {
  return state() == State::running && !is_finalized();
}

void MpiSession::give_up() {
  state() = State::given_up;
}

void MpiSession::check_world(const World& world) {
  int size = 0;
  int rank = 0;
  CONVOY_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CONVOY_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CONVOY_CHECK(
      size == world.size,
      "{} is {}, but MPI has {} of them: start the ranks with the mpirun of this program's "
      "MPI ({})",
      world.size_variable, world.size, size, library_version());
  CONVOY_CHECK(rank == world.rank, "the launcher's variables say rank {}, but MPI says {}",
               world.rank, rank);
}

MpiComm::MpiComm(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

MpiComm MpiComm::copy_of(MPI_Comm other) {
  MPI_Comm copy = MPI_COMM_NULL;
  CONVOY_MPI(MPI_Comm_dup(other, &copy));
  return MpiComm(copy);
}

MpiComm MpiComm::host_of(MPI_Comm other) {
  MPI_Comm host = MPI_COMM_NULL;
  CONVOY_MPI(MPI_Comm_split_type(other, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  return MpiComm(host);
}

MpiComm::~MpiComm() {
  if (comm_ != MPI_COMM_NULL && MpiSession::runs()) MPI_Comm_free(&comm_);
}

MpiComm::MpiComm(MpiComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}

MpiComm& MpiComm::operator=(MpiComm&& other) noexcept {
  std::swap(comm_, other.comm_);
  return *this;
}

int MpiComm::rank() const {
  int rank = 0;
  CONVOY_MPI(MPI_Comm_rank(comm_, &rank));
  return rank;
}

int MpiComm::size() const {
  int size = 0;
  CONVOY_MPI(MPI_Comm_size(comm_, &size));
  return size;
}

}  // namespace convoy
