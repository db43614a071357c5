#include "cli/config_file.h"

#include "cli/flags.h"
#include "tests/cli/cli_test.h"

using namespace convoy::cli;

namespace {

std::string error_of(const std::string& content) {
  TemporaryFolder folder;
  std::string path = folder.write("run.toml", content);
  std::string text = usage_error([&] { read_config_file(path); });
  std::size_t start = text.find("run.toml");
  return start == std::string::npos ? text : text.substr(start);
}

}  // namespace

TEST_CASE("config files may write each kind of value") {
  TemporaryFolder folder;
  std::string path =
      folder.write("run.toml",
                   "batch = 32\nlr = 1\nmomentum = 0.5\nnesterov = true\n"
                   "resume = \"auto\"\ndevices = [\"cpu:0\", \"cpu:1\"]\nstages = 2\n"
                   "model = \"resnet18\" # comment\n");
  std::vector<Assignment> read = read_config_file(path);
  REQUIRE(read.size() == 8);
  CHECK(read[0].flag->name == "batch");
  CHECK(read[0].value.text == "32");
  CHECK(read[0].value.origin == path + ":1: batch");
  CHECK(read[1].value.text == "1");
  CHECK(read[2].value.text == "0.5");
  CHECK(read[3].value.text == "true");
  CHECK(read[4].value.text == "auto");
  CHECK(read[5].value.text == "cpu:0,cpu:1");
  CHECK(read[6].value.text == "2");
  CHECK(read[7].value.text == "resnet18");
}

TEST_CASE("config files: errors name file and line") {
  CHECK(error_of("batch = 1\nimage_size = 2\n") ==
        "run.toml:2: \"image_size\" is no setting of convoy; did you mean image-size?");
  CHECK(error_of("config = \"x\"\n") == "run.toml:1: a config file names no other one");
  CHECK(error_of("batch = \"32\"\n") == "run.toml:1: batch is a string, expected an integer");
  CHECK(error_of("batch = 1.5\n") ==
        "run.toml:1: batch is a number with a point, expected an integer");
  CHECK(error_of("\nlr = true\n") == "run.toml:2: lr is true or false, expected a number");
  CHECK(error_of("[model]\nname = \"x\"\n") == "run.toml:1: model is a table, expected a string");
  CHECK(error_of("model = 18\n") == "run.toml:1: model is an integer, expected a string");
  CHECK(error_of("nesterov = 1\n") == "run.toml:1: nesterov is an integer, expected true or false");
  CHECK(error_of("stages = 1.5\n") ==
        "run.toml:1: stages is a number with a point, expected a string or an integer");
  CHECK(error_of("resume = 1\n") ==
        "run.toml:1: resume is an integer, expected true, false or a string");
  CHECK(error_of("devices = [1]\n") ==
        "run.toml:1: devices is an array, expected a string or an array of strings");
  CHECK(error_of("log = 1979-05-27\n") == "run.toml:1: log is a date or time, expected a string");
}

TEST_CASE("config files: broken TOML and unreadable files") {
  CHECK(error_of("batch = 1\nbatch = 2\n").starts_with("run.toml:2: "));
  CHECK(error_of("a = 1\n\nb = = 2\n").starts_with("run.toml:3: "));
  CHECK(usage_error([] { read_config_file("/nowhere/run.toml"); }) ==
        "--config: cannot read /nowhere/run.toml: No such file or directory");
  TemporaryFolder folder;
  CHECK(usage_error([&] { read_config_file(folder.path("")); }).ends_with("is a folder"));
}
