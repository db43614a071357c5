#include "cli/check_settings.h"

#include "cli/read_options.h"
#include "kernels/backends.h"
#include "kernels/base/host_context.h"
#include "tests/cli/cli_test.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

Options checked(const std::vector<std::string>& words) {
  Options options = read_options(read_command_line(words), {});
  check_settings(options);
  return options;
}

std::string error(const std::vector<std::string>& words) {
  return usage_error([&] { checked(words); });
}

}  // namespace

TEST_CASE("check_settings passes what this build can do") {
  CHECK_NOTHROW(checked({}));
  CHECK_NOTHROW(checked({"--schedule", "gpipe", "--comm", "thread", "--deterministic"}));
  CHECK_NOTHROW(checked({"--precision", "fp64", "--devices", "ref:0"}));
  CHECK_NOTHROW(checked({"--bn", "deferred", "--micro-batches", "3"}));
  CHECK_NOTHROW(checked({"--bn", "deferred+sync", "--devices", "cpu:0,cpu:1", "--comm", "mpi"}));
}

TEST_CASE("check_settings: what takes rows has no classes to learn") {
  CHECK_NOTHROW(checked({"--model", "toy", "--loss", "mse"}));
  for (const char* model : {"toy", "line"}) {
    CHECK(error({"--model", model, "--loss", "cross-entropy"}) ==
          "--loss cross-entropy: " + std::string(model) +
              " takes rows of numbers, which have no classes; expected mse");
    CHECK(error({"--model", model, "--label-smoothing", "0.1"}) ==
          "--label-smoothing goes with --loss cross-entropy, not with mse");
  }
}

TEST_CASE("check_settings: threads are few for each core, more than cores is a warning") {
  const int cores = allowed_cores();
  const std::string most = std::to_string(8 * cores), more = std::to_string(8 * cores + 1);
  CHECK(device_warnings(checked({"--threads", std::to_string(cores)}).settings).empty());
  CHECK(device_warnings(checked({"--threads", most}).settings) ==
        std::vector{most + " threads share the " + std::to_string(cores) +
                    " core(s) that this process may use"});
  CHECK(error({"--threads", more}) == "--threads " + more + ": this process may use " +
                                          std::to_string(cores) + " core(s), expected 1 to " +
                                          most);
}

TEST_CASE("check_settings: devices beyond the cores share them, with a warning") {
  const std::string cores = std::to_string(allowed_cores());
  const std::string last = std::to_string(allowed_cores() - 1);
  CHECK(device_warnings(checked({"--threads", "1", "--devices", "cpu:" + last}).settings).empty());
  CHECK(device_warnings(checked({"--threads", "1", "--devices", "cpu:" + cores}).settings) ==
        std::vector{"cpu:" + cores + ": this process may use " + cores +
                    " core(s); devices share them"});
}

TEST_CASE("flags that change nothing in a layout are told where they are given") {
  CHECK(idle_notes(checked({"--deterministic"})).empty());
  const std::vector<std::string> words = {"--schedule",     "gpipe", "--stages-per-worker", "3",
                                          "--comm-timeout", "9",     "--recompute"};
  CHECK(idle_notes(checked(words)) ==
        std::vector<std::string>{"--schedule has no effect with one stage",
                                 "--stages-per-worker has no effect with one stage",
                                 "--comm-timeout has no effect on one device",
                                 "--recompute has no effect on one device"});
  const std::vector<std::string> two = idle_notes(checked(words), {1, 2, 1});
  REQUIRE(two.size() == 2);
  CHECK(two[0] == "--stages-per-worker has no effect without --schedule interleaved");
  CHECK(two[1].starts_with("one micro-batch a batch: stages work one after the other"));
  CHECK(idle_notes(checked({"--micro-batches", "4"}), {1, 2, 1}).empty());
}

TEST_CASE("check_settings knows the models") {
  CHECK(error({"--model", "resnet5"})
            .starts_with("--model: \"resnet5\" is unknown, expected one of"));
  CHECK(error({"--model", "resnet5"}).ends_with("did you mean resnet50?"));
}

TEST_CASE("check_settings refuses layouts that contradict themselves") {
  CHECK(error({"--devices", "cpu:0,cpu:1,cpu:0"}) ==
        "--devices cpu:0,cpu:1,cpu:0: cpu:0 is named twice, which only GPUs may be");
  CHECK(error({"--cut", "layer3"}) ==
        "--cut layer3: one stage has no cut; say how many there are with --stages");
  CHECK(
      error({"--graph"}) ==
      "--graph records the step of one GPU, but --devices is cpu:0, expected one cuda:K or emu:K");
  CHECK(error({"--graph", "--devices", "emu:0,emu:1"}).find("--devices is emu:0,emu:1") !=
        std::string::npos);
  CHECK_NOTHROW(checked({"--graph", "--devices", "emu:0"}));
  CHECK(error({"--comm", "nccl"}) ==
        "--comm nccl: cpu:0 is no GPU, expected --devices cuda:K or emu:K");
  CHECK(error({"--micro-batches", "2", "--micro-batch-size", "3"}) ==
        "--micro-batch-size 3 and --micro-batches 2 exclude each other");
}

TEST_CASE("check_settings refuses arithmetic that the devices lack") {
  for (const char* precision : {"bf16", "tf32"}) {
    CHECK_NOTHROW(checked({"--precision", precision, "--devices", "emu:0"}));
  }
  CHECK(error({"--precision", "tf32"}) ==
        "--precision tf32 needs --devices cuda:K or emu:K, but the device is cpu:0");
  CHECK(error({"--precision", "bf16", "--devices", "ref:0"}) ==
        "--precision bf16 needs --devices cpu:K, cuda:K or emu:K, but the device is ref:0");
  const std::string problem = cpu::why_no_bf16();
  if (problem.empty()) {
    CHECK_NOTHROW(checked({"--precision", "bf16"}));
  } else {
    CHECK(error({"--precision", "bf16"}) == "--precision bf16 on cpu:0: " + problem);
  }
  CHECK(error({"--precision", "fp64"}) ==
        "--precision fp64 needs --devices ref:K, cuda:K or emu:K, but the device is cpu:0");
  CHECK(error({"--kernels", "vendor"}).starts_with("--kernels vendor concerns GPUs"));
}

TEST_CASE("check_settings refuses contradictions") {
  CHECK(error({"--nesterov", "--optimizer", "adamw"}) ==
        "--nesterov goes with --optimizer sgd, not with adamw");
  CHECK(error({"--nesterov", "--momentum", "0"}) == "--nesterov needs --momentum above 0, it is 0");
  CHECK(error({"--momentum", "0.9", "--optimizer", "adamw"}) ==
        "--momentum goes with --optimizer sgd or lars, not with adamw");
  CHECK(error({"--label-smoothing", "0.1", "--loss", "mse"}) ==
        "--label-smoothing goes with --loss cross-entropy, not with mse");
}

TEST_CASE("check_settings refuses files that are not written yet") {
  CHECK(error({"--tensorboard", "tb"}) == "--tensorboard tb is not in this build yet");
}
