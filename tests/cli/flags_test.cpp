#include "cli/flags.h"

#include <set>

#include "cli/command_line.h"
#include "cli/read_options.h"
#include "engine/data/decode_image.h"
#include "engine/data/transform.h"
#include "tests/cli/cli_test.h"

using namespace convoy::cli;

namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Options read(const std::vector<std::string>& words) {
  return read_options(read_command_line(words), {});
}

convoy::Settings settings(const std::string& line) {
  return read(words_of(line)).settings;
}

std::string error(const std::vector<std::string>& words) {
  return usage_error([&] { read(words); });
}

}  // namespace

TEST_CASE("the table has each flag of the design once") {
  const std::vector<std::string> expected = words_of(
      "model classes image-size precision bn weights "
      "data limit loader-threads bad-images max-pixels "
      "batch accumulate epochs steps optimizer lr lr-schedule warmup momentum nesterov "
      "weight-decay label-smoothing loss clip-grad eval-every seed "
      "devices replicas stages cut schedule stages-per-worker micro-batch-size "
      "micro-batches recompute threads device-memory comm "
      "checkpoint save-every keep resume log trace report tensorboard comm-timeout kernels "
      "graph deterministic ");
  std::vector<std::string> names;
  for (const Flag& flag : all_flags()) {
    if (flag.group != Group::program) names.push_back(flag.name);
  }
  CHECK(names == expected);
  std::vector<std::string> all = flag_names();
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
}

TEST_CASE("flags of model, data and devices set the settings") {
  convoy::Settings s = settings(
      "--model resnet18 --classes=7 --image-size 64 --precision fp64 --bn frozen --weights "
      "w.safetensors --data cifar10:/d --limit 9 -j4 --bad-images skip --max-pixels 100 "
      "--devices ref,cpu:1");
  CHECK(s.model == "resnet18");
  CHECK(s.classes == 7);
  CHECK(s.image_size == 64);
  CHECK(s.precision == "fp64");
  CHECK(s.bn == "frozen");
  CHECK(s.weights == "w.safetensors");
  CHECK(s.data == "cifar10:/d");
  CHECK(s.limit == 9);
  CHECK(s.loader_threads == 4);
  CHECK(s.bad_images == "skip");
  CHECK(s.max_pixels == 100);
  CHECK(s.devices == std::vector<std::string>{"ref:0", "cpu:1"});
}

TEST_CASE("flags of optimization set the settings") {
  convoy::Settings s = settings(
      "--batch 8 --accumulate 2 --epochs 3 --steps 5 --optimizer lars --lr 0.5 "
      "--lr-schedule cosine --warmup 4 --momentum 0.8 --nesterov --weight-decay 0.1 "
      "--label-smoothing 0.2 --loss mse --clip-grad 1.5 --eval-every 2 --seed "
      "18446744073709551615");
  CHECK(s.batch == 8);
  CHECK(s.accumulate == 2);
  CHECK(s.epochs == 3);
  CHECK(s.steps == 5);
  CHECK(s.optimizer == "lars");
  CHECK(s.lr == 0.5);
  CHECK(s.lr_schedule == "cosine");
  CHECK(s.warmup == 4);
  CHECK(s.momentum == 0.8);
  CHECK(s.nesterov);
  CHECK(s.weight_decay == 0.1);
  CHECK(s.label_smoothing == 0.2);
  CHECK(s.loss == "mse");
  CHECK(s.clip_grad == 1.5);
  CHECK(s.eval_every == 2);
  CHECK(s.seed == 18446744073709551615u);
}

TEST_CASE("flags of the layout set the settings") {
  convoy::Settings s = settings(
      "--replicas 2 --stages auto --cut layer2,layer3 --schedule zb-h1 --stages-per-worker "
      "3 --micro-batch-size 4 --micro-batches 5 --recompute --threads 2 --device-memory "
      "1GiB --comm mpi");
  CHECK(s.replicas == 2);
  CHECK(s.stages == "auto");
  CHECK(s.cut == "layer2,layer3");
  CHECK(s.schedule == "zb-h1");
  CHECK(s.stages_per_worker == 3);
  CHECK(s.micro_batch_size == 4);
  CHECK(s.micro_batches == 5);
  CHECK(s.recompute);
  CHECK(s.threads == 2);
  CHECK(s.device_memory == 1073741824);
  CHECK(s.comm == "mpi");
}

TEST_CASE("flags of the run set the settings") {
  convoy::Settings s = settings(
      "--checkpoint c --save-every 10 --keep 3 --resume --log l --trace t --report r "
      "--tensorboard tb --comm-timeout 5 --kernels vendor --graph --deterministic");
  CHECK(s.checkpoint == "c");
  CHECK(s.save_every == 10);
  CHECK(s.keep == 3);
  CHECK(s.resume == "yes");
  CHECK(s.log == "l");
  CHECK(s.trace == "t");
  CHECK(s.report == "r");
  CHECK(s.tensorboard == "tb");
  CHECK(s.comm_timeout == 5);
  CHECK(s.kernels == "vendor");
  CHECK(s.graph);
  CHECK(s.deterministic);
}

TEST_CASE("flags: resume takes an optional auto, toggles may be off") {
  CHECK(settings("--resume auto").resume == "auto");
  CHECK(settings("--resume=auto").resume == "auto");
  CHECK(settings("--resume --json").resume == "yes");
  CHECK(settings("--resume=no").resume.empty());
  CHECK(!settings("--nesterov --nesterov=false").nesterov);
}

TEST_CASE("flags: words without dashes and those after -- are operands") {
  Options options = read({"a.png", "--json", "b.png", "-", "--", "--c.png"});
  CHECK(options.json);
  CHECK(options.operands == std::vector<std::string>{"a.png", "b.png", "-", "--c.png"});
}

TEST_CASE("flags: aliases mean the same") {
  convoy::Settings s = settings(
      "--arch resnet34 --num-classes 3 --img-size 48 --data-path imgs -j 2 --opt adamw "
      "--sched step --wd 0.2 --smoothing 0.3 --grad-accum-steps 4 --global-batch 16 "
      "--chunks 2 --initial-checkpoint w --amp --sync-bn --schedule gpipe");
  CHECK(s.model == "resnet34");
  CHECK(s.classes == 3);
  CHECK(s.image_size == 48);
  CHECK(s.data == "folder:imgs");
  CHECK(s.loader_threads == 2);
  CHECK(s.optimizer == "adamw");
  CHECK(s.lr_schedule == "step");
  CHECK(s.weight_decay == 0.2);
  CHECK(s.label_smoothing == 0.3);
  CHECK(s.accumulate == 4);
  CHECK(s.batch == 16);
  CHECK(s.micro_batches == 2);
  CHECK(s.weights == "w");
  CHECK(s.precision == "bf16");
  CHECK(s.bn == "sync");
  CHECK(s.schedule == "fill-drain");
  CHECK(settings("--n-microbatches 6").micro_batches == 6);
  CHECK(settings("--schedule interleaved-1f1b").schedule == "interleaved");
  CHECK(settings("--schedule zbh1").schedule == "zb-h1");
  CHECK(settings("--schedule plan.txt").schedule == "plan.txt");
  CHECK(settings("--data some/folder").data == "folder:some/folder");
  CHECK(read_command_line({"--amp"}).notes ==
        std::vector<std::string>{"--amp is --precision bf16 here"});
}

TEST_CASE("flags: look-alikes of other programs are refused with the right flag") {
  for (const char* word : {"-b", "--batch-size", "--bs"}) {
    CHECK(error({word, "8"}) == std::string(word) +
                                    " counts the images of one device elsewhere; here --batch N "
                                    "counts those of a batch over all replicas");
  }
  CHECK(error({"-b8"}).starts_with("-b counts"));
  CHECK(error({"--batch-size=8"}).starts_with("--batch-size counts"));
  CHECK(error({"--limit-train-batches", "8"}).find("--limit N counts training images") !=
        std::string::npos);
  CHECK(error({"--warmup-epochs", "5"}).find("--warmup STEPS counts steps") != std::string::npos);
  CHECK(error({"--workers", "5"}).find("--loader-threads") != std::string::npos);
  CHECK(error({"--pretrained"}).find("--weights") != std::string::npos);
}

TEST_CASE("flags: unknown ones are told with the nearest") {
  CHECK(error({"--epoch", "3"}) == "--epoch is no flag of convoy; did you mean --epochs?");
  CHECK(error({"--image_size", "3"}) ==
        "--image_size is no flag of convoy; did you mean --image-size?");
  CHECK(error({"--frobnicate"}) == "--frobnicate is no flag of convoy");
  CHECK(error({"-x"}) == "-x is no flag of convoy");
  CHECK(error({"-model", "toy"}) == "-m is no flag of convoy");
}

TEST_CASE("flags: missing and needless values") {
  CHECK(error({"--batch"}) == "--batch needs a value: --batch N");
  CHECK(error({"--batch", "--json"}) == "--batch needs a value: --batch N");
  CHECK(error({"--amp=1"}) == "--amp takes no value, but \"1\" is given");
  CHECK(error({"--json=maybe"}) == "--json: \"maybe\" is not true or false");
}

TEST_CASE("flags: values out of range or unknown") {
  CHECK(error({"--batch", "0"}) == "--batch: 0 is out of range, expected 1 to 2147483647");
  CHECK(error({"--lr", "-1"}) == "--lr: -1 is out of range, expected at least 0");
  CHECK(error({"--momentum", "1"}) ==
        "--momentum: 1 is out of range, expected at least 0 and less than 1");
  CHECK(error({"--label-smoothing", "1"}) ==
        "--label-smoothing: 1 is out of range, expected at least 0 and less than 1");
  CHECK(error({"--image-size", "70000"}) ==
        "--image-size: 70000 is out of range, expected 1 to 16384");
  CHECK(error({"--comm-timeout", "0"}) ==
        "--comm-timeout: 0 is out of range, expected more than 0");
  CHECK(error({"--stages", "0"}) ==
        "--stages: 0 is out of range, expected 1 to 2147483647 or auto");
  CHECK(error({"--optimizer", "adam"}) ==
        "--optimizer: \"adam\" is unknown, expected one of sgd, lars, adamw; did you mean adamw?");
  CHECK(error({"--schedule", "1f1c"}).find("did you mean 1f1b?") != std::string::npos);
  CHECK(error({"--devices", "cpu:x"}).starts_with("--devices: device: 'cpu:x' is none"));
  CHECK(error({"--data", "cifar10"}) ==
        "--data: \"cifar10\" names no folder, expected cifar10:DIR");
  CHECK(error({"--data", "folder:"}) == "--data: \"folder:\" names no folder, expected folder:DIR");
  CHECK(error({"--data", "fasion-mnist"}).find("did you mean fashion-mnist?") != std::string::npos);
}

TEST_CASE("flags: counts have upper limits, told with value and range") {
  const std::pair<const char*, std::int64_t> limits[] = {
      {"--batch", 2147483647},         {"--accumulate", 2147483647},
      {"--epochs", 2147483647},        {"--micro-batch-size", 2147483647},
      {"--micro-batches", 2147483647}, {"--limit", 2147483647},
      {"--keep", 2147483647},          {"--eval-every", 2147483647},
      {"--steps", 1099511627776},      {"--warmup", 1099511627776},
      {"--save-every", 1099511627776}, {"--classes", 16777216},
      {"--image-size", 16384},         {"--max-pixels", 178956970000}};
  for (auto [flag, most] : limits) {
    INFO(flag);
    CHECK_NOTHROW(read({flag, std::to_string(most)}));
    std::string more = std::to_string(most + 1);
    std::string text = error({flag, more});
    CHECK(text.starts_with(std::string(flag) + ": " + more + " is out of range, expected "));
    CHECK(text.ends_with(" to " + std::to_string(most)));
  }
}

TEST_CASE("flags: the limits of images are those of the loader and the decoders") {
  CHECK_NOTHROW(convoy::Transform({.image_size = 16384}));
  CHECK_THROWS_AS(convoy::Transform({.image_size = 16385}), convoy::Error);
  auto complaint = [](std::int64_t pixels) {
    try {
      convoy::read_image_file("/nowhere", pixels);
    } catch (const convoy::Error& error) {
      return error.text();
    }
    return std::string();
  };
  CHECK(complaint(178956970000).find("No such file") != std::string::npos);
  CHECK(complaint(178956970001).find("--max-pixels") != std::string::npos);
}

TEST_CASE("the echo has each setting under its flag's name, in its own type") {
  JsonObject line;
  echo_settings(read({"--batch", "8", "--lr", "0.1", "--nesterov", "--model", "a\"b"}), line);
  std::string text = line.text();
  for (const char* part :
       {R"("batch":8,)", R"("lr":0.1,)", R"("nesterov":true,)", R"("model":"a\"b",)",
        R"("devices":["cpu:0"],)", R"("limit":null,)", R"("seed":0,)", R"("stages":"1",)",
        R"("checkpoint":null,)", R"("deterministic":false})"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("json") == std::string::npos);
}

TEST_CASE("defaults are told as the settings have them") {
  CHECK(default_text(*find_flag("batch")) == "64");
  CHECK(default_text(*find_flag("optimizer")) == "sgd");
  CHECK(default_text(*find_flag("classes")) == "the data's");
  CHECK(default_text(*find_flag("nesterov")).empty());
  CHECK(variable(*find_flag("image-size")) == "CONVOY_IMAGE_SIZE");
  for (const Flag& flag : all_flags()) {
    INFO(flag.name);
    CHECK(default_text(flag) != "null");
  }
}
