#include "cli/read_options.h"

#include "cli/flags.h"
#include "tests/cli/cli_test.h"

using namespace convoy::cli;

TEST_CASE("a flag wins over a variable, a variable over the file, the file over the default") {
  TemporaryFolder folder;
  std::string path = folder.write("run.toml", "batch = 2\nepochs = 2\nlimit = 2\n");
  CommandLine line = read_command_line({"-c", path, "--batch", "4"});
  Options options = read_options(line, {{"CONVOY_BATCH", "3"}, {"CONVOY_EPOCHS", "3"}});
  CHECK(options.settings.batch == 4);
  CHECK(options.settings.epochs == 3);
  CHECK(options.settings.limit == 2);
  CHECK(options.settings.accumulate == 1);
}

TEST_CASE("emulated GPUs have ten minutes before they count as stuck, if nobody says otherwise") {
  const auto timeout = [](const std::vector<std::string>& words) {
    return read_options(read_command_line(words), {}).settings.comm_timeout;
  };
  CHECK(timeout({"--devices", "cpu:0"}) == 60);
  CHECK(timeout({"--devices", "emu:0,emu:1"}) == 600);
  CHECK(timeout({"--devices", "emu:0,emu:1", "--comm-timeout", "7"}) == 7);
}

TEST_CASE("the last of equal flags wins") {
  CommandLine line = read_command_line({"--batch", "4", "--batch", "5"});
  CHECK(read_options(line, {}).settings.batch == 5);
}

TEST_CASE("the config file may be named by a variable, a flag wins") {
  TemporaryFolder folder;
  std::string one = folder.write("one.toml", "batch = 1\n");
  std::string two = folder.write("two.toml", "batch = 2\n");
  Variables variables = {{"CONVOY_CONFIG", one}};
  CHECK(read_options(read_command_line({}), variables).settings.batch == 1);
  CHECK(read_options(read_command_line({"--config", two}), variables).settings.batch == 2);
}

TEST_CASE("errors of variables and files name them") {
  CHECK(usage_error([] {
          read_options({}, {{"CONVOY_IMAGE_SIZE", "0"}});
        }) == "CONVOY_IMAGE_SIZE: 0 is out of range, expected 1 to 16384");
  TemporaryFolder folder;
  std::string path = folder.write("run.toml", "\nmomentum = 2\n");
  CHECK(usage_error([&] {
          read_options(read_command_line({"-c", path}), {});
        }) == path + ":2: momentum: 2 is out of range, expected at least 0 and less than 1");
}

TEST_CASE("an empty variable is not set; a misspelt one is told, a foreign one is not") {
  Options read = read_options(
      {}, {{"CONVOY_BATCH", ""}, {"CONVOY_EPOCH", "3"}, {"CONVOY_REFERENCE_DIR", "x"}});
  CHECK(read.settings.batch == 64);
  CHECK(read.notes ==
        std::vector<std::string>{"CONVOY_EPOCH is no setting; did you mean CONVOY_EPOCHS?"});
}

TEST_CASE("variables of this process are found") {
  REQUIRE(::setenv("CONVOY_TEST_VARIABLE", "a=b", 1) == 0);
  bool found = false;
  for (const auto& [name, value] : convoy_variables()) {
    CHECK(name.starts_with("CONVOY_"));
    if (name == "CONVOY_TEST_VARIABLE") found = value == "a=b";
  }
  CHECK(found);
  ::unsetenv("CONVOY_TEST_VARIABLE");
}

namespace {

/// --checkpoint from `one`, --weights from `other`, after they were settled.
convoy::Settings settled(Source one, Source other) {
  TemporaryFolder folder;
  std::string file;
  Variables variables;
  std::vector<std::string> words;
  for (auto [name, source] : {std::pair{"checkpoint", one}, {"weights", other}}) {
    if (source == Source::config_file) file += std::string(name) + " = \"x\"\n";
    if (source == Source::flag) words.insert(words.end(), {"--" + std::string(name), "x"});
    if (source != Source::variable) continue;
    variables.emplace_back(variable(*find_flag(name)), "x");
  }
  words.insert(words.end(), {"-c", folder.write("run.toml", file)});
  Options options = read_options(read_command_line(words), variables);
  settle_rivals(options, "checkpoint", "weights");
  CHECK(was_given(options, "checkpoint") == !options.settings.checkpoint.empty());
  CHECK(was_given(options, "weights") == !options.settings.weights.empty());
  return options.settings;
}

}  // namespace

TEST_CASE("of two settings that exclude each other the stronger source wins") {
  const Source sources[] = {Source::config_file, Source::variable, Source::flag};
  for (Source one : sources) {
    for (Source other : sources) {
      INFO(static_cast<int>(one) << " " << static_cast<int>(other));
      convoy::Settings settings = settled(one, other);
      CHECK(settings.checkpoint.empty() == (one < other));
      CHECK(settings.weights.empty() == (other < one));
    }
  }
}

TEST_CASE("a setting given twice is as strong as its strongest source") {
  Options options = read_options(read_command_line({"--micro-batches", "2"}),
                                 {{"CONVOY_MICRO_BATCHES", "3"}, {"CONVOY_MICRO_BATCH_SIZE", "4"}});
  settle_rivals(options, "micro-batch-size", "micro-batches");
  CHECK(options.settings.micro_batches == 2);
  CHECK(!options.settings.micro_batch_size);
}
