#include "cli/read_options.h"

#include "tests/cli/cli_test.h"

using namespace convoy::cli;

TEST_CASE("a flag wins over a variable, a variable over the file, the file over the default") {
  TemporaryFolder folder;
  std::string path = folder.write("run.toml", "batch = 2\nepochs = 2\nlimit = 2\n");
  CommandLine line = read_command_line({"-c", path, "--batch", "4"});
  Options options = read_options(line, {{"CONVOY_BATCH", "3"}, {"CONVOY_EPOCHS", "3"}}).options;
  CHECK(options.settings.batch == 4);
  CHECK(options.settings.epochs == 3);
  CHECK(options.settings.limit == 2);
  CHECK(options.settings.accumulate == 1);
}

TEST_CASE("the last of equal flags wins") {
  CommandLine line = read_command_line({"--batch", "4", "--batch", "5"});
  CHECK(read_options(line, {}).options.settings.batch == 5);
}

TEST_CASE("the config file may be named by a variable, a flag wins") {
  TemporaryFolder folder;
  std::string one = folder.write("one.toml", "batch = 1\n");
  std::string two = folder.write("two.toml", "batch = 2\n");
  Variables variables = {{"CONVOY_CONFIG", one}};
  CHECK(read_options(read_command_line({}), variables).options.settings.batch == 1);
  CHECK(read_options(read_command_line({"--config", two}), variables).options.settings.batch == 2);
}

TEST_CASE("errors of variables and files name them") {
  CHECK(usage_error([] {
          read_options({}, {{"CONVOY_IMAGE_SIZE", "0"}});
        }) == "CONVOY_IMAGE_SIZE: 0 is out of range, expected 1 to 65535");
  TemporaryFolder folder;
  std::string path = folder.write("run.toml", "\nmomentum = 2\n");
  CHECK(usage_error([&] {
          read_options(read_command_line({"-c", path}), {});
        }) == path + ":2: momentum: 2 is out of range, expected at least 0 and less than 1");
}

TEST_CASE("an empty variable is not set; a misspelt one is told, a foreign one is not") {
  ReadOptions read = read_options(
      {}, {{"CONVOY_BATCH", ""}, {"CONVOY_EPOCH", "3"}, {"CONVOY_REFERENCE_DIR", "x"}});
  CHECK(read.options.settings.batch == 64);
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
