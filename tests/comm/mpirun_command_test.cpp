#include "comm/launch/mpirun_command.h"

#include "kernels/base/error.h"
#include "tests/support/catch.h"

namespace convoy {
namespace {

std::string text(const LaunchRequest& request, const LaunchPlace& place) {
  return shell_text(mpirun_command(request, place));
}

}  // namespace

TEST_CASE("mpirun: flags answer its refusals, and only then") {
  const LaunchRequest request = {2, "", "", {"convoy", "train"}};
  CHECK(text(request, {false, 2, {}}) == "mpirun -q -n 2 --bind-to none convoy train");
  CHECK(text(request, {true, 1, {}}) ==
        "mpirun -q -n 2 --allow-run-as-root --oversubscribe --bind-to none convoy train");
}

TEST_CASE("mpirun: other hosts need the hosts file and our variables") {
  const LaunchRequest request = {4, "h.txt", "eth1", {"convoy", "train"}};
  CHECK(text(request, {false, 8, {"CONVOY_SEED", "OMP_NUM_THREADS"}}) ==
        "mpirun -q -n 4 --bind-to none --hostfile h.txt -x CONVOY_SEED -x OMP_NUM_THREADS --mca "
        "btl_tcp_if_include eth1 --mca oob_tcp_if_include eth1 -x CONVOY_IFACE=eth1 convoy train");
}

TEST_CASE("hosts files: slots and hosts are counted") {
  const std::string file = "# two\n\nn1 slots=4\nn2 # one\n n1 max-slots=3 slots=2\n";
  CHECK(slots_of(file) == 7);
  CHECK(hosts_of(file) == 2);
}

TEST_CASE("words are quoted where a shell would cut or change them") {
  CHECK(shell_text({"a", "b c", "", "it's", "$x", "--k=v,1"}) ==
        "a 'b c' '' 'it'\\''s' '$x' --k=v,1");
}

TEST_CASE("what cannot be started is refused with the reason") {
  auto usage = [](const LaunchRequest& request) {
    try {
      check_request(request);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      return error.text();
    }
    return std::string();
  };
  CHECK(usage({2, "", "", {}}).starts_with("launch: no command is given"));
}

}  // namespace convoy
