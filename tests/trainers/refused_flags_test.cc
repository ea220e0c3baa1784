// Wrong command lines, which trainers reject before they start a world.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <sstream>
#include <string>
#include <vector>

#include "support/input_error.h"
#include "trainers/resnet50_flags.h"
#include "trainers/synthetic/synthetic_flags.h"
#include "trainers/transformer_flags.h"

namespace hvdlite::trainers {
namespace {

struct Program {
  const char* name;
  support::EarlyEnd (*end)(int argc, const char* const* argv);
};

constexpr Program kResNet50 = {"train_resnet50",
                               [](int argc, const char* const* argv) {
                                 return ParseResNet50Flags(argc, argv).end;
                               }};
constexpr Program kSynthetic = {"train_synthetic",
                                [](int argc, const char* const* argv) {
                                  return ParseSyntheticFlags(argc, argv).end;
                                }};
constexpr Program kTransformer = {
    "train_transformer", [](int argc, const char* const* argv) {
      return ParseTransformerFlags(argc, argv).end;
    }};

struct Refused {
  Program program;
  std::string flags;
  std::string reason;
};

class RefusedFlagsTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedFlagsTest, AreAnErrorWithTheReason) {
  std::vector<std::string> words = {GetParam().program.name};
  std::istringstream stream(GetParam().flags);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const support::EarlyEnd end = GetParam().program.end(
      static_cast<int>(arguments.size()), arguments.data());
  EXPECT_EQ(end.exit_code, support::kInputErrorExitCode);
  EXPECT_THAT(end.text, ::testing::HasSubstr(GetParam().reason));
}

// "train_synthetic_batch_size_0"
std::string NameOf(const ::testing::TestParamInfo<Refused>& info) {
  std::string name;
  for (const char c :
       info.param.program.name + std::string(" ") + info.param.flags) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else if (name.back() != '_') {
      name += '_';
    }
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Trainers, RefusedFlagsTest,
    ::testing::ValuesIn(std::vector<Refused>{
        {kResNet50, "--synthetic --epoch 3",
         "unknown flag --epoch; did you mean --epochs?"},
        {kResNet50, "--synthetic x", "unexpected argument 'x'"},
        {kResNet50, "--synthetic --epochs x", "--epochs"},
        {kResNet50, "--synthetic --lr -1", "--lr: must be above 0, but is -1"},
        {kResNet50, "--synthetic --arch vgg", "resnet50"},
        {kResNet50, "--synthetic --stem vgg", "imagenet"},
        {kResNet50, "--epochs 1", "--data-dir"},
        {kResNet50, "--synthetic --data-dir d", "--data-dir"},
        {kResNet50, "--data-dir d --classes 5", "--classes"},
        {kResNet50, "--synthetic --val-domains photo", "--val-domains"},
        {kResNet50, "--synthetic --augmentation imagenet",
         "--augmentation needs --data-dir"},
        {kResNet50, "--data-dir d --augmentation pacs",
         "domain-generalisation"},
        {kResNet50, "--synthetic --skip-unreadable",
         "--skip-unreadable needs --data-dir"},
        {kResNet50, "--synthetic --check-data",
         "--check-data needs --data-dir"},
        {kResNet50, "--synthetic --bf16 --memory-format onednn",
         "--bf16 needs --memory-format nchw or nhwc"},
        {kResNet50, "--synthetic --no-onednn --memory-format onednn",
         "--no-onednn needs --memory-format nchw or nhwc"},
        {kResNet50, "--synthetic --image-size 7", "7"},
        {kResNet50, "--synthetic --workers -1", "-1"},
        {kResNet50, "--synthetic --lr-steps 3,2", "--lr-steps"},
        {kSynthetic, "--model resnet51", "resnet51"},
        {kSynthetic, "--data-format nchw", "nchw"},
        {kSynthetic, "--batch-size 0", "--batch-size"},
        {kSynthetic, "--batchsize 1", "did you mean --batch-size"},
        {kSynthetic, "--model mlp --image-size 32",
         "--image-size does not suit --model mlp; its flags are: "
         "--classes, --hidden"},
        {kSynthetic, "--model vae --data-format NHWC",
         "--data-format does not suit --model vae"},
        {kSynthetic, "--model alexnet --image-size 62",
         "--image-size is 62; --model alexnet needs at least 63"},
        {kSynthetic, "--forward-only --fp16-allreduce",
         "--fp16-allreduce needs shared gradients"},
        {kSynthetic, "--forward-only --views",
         "--views needs shared gradients"},
        {kSynthetic, "--forward-only --check",
         "--check needs shared gradients"},
        {kSynthetic, "--gradients-only --optimizer adam --check",
         "--check needs shared gradients, but --gradients-only has none"},
        {kSynthetic, "--gradients-only --forward-only", "--forward-only"},
        {kSynthetic, "--gradients-only --model image_loading",
         "--gradients-only needs shared gradients"},
        {kSynthetic, "--model image_loading --use-adasum",
         "--use-adasum needs shared gradients, but --model "
         "image_loading has none"},
        {kSynthetic, "--repeat 10", "--repeat is 10; expected more than 10"},
        {kSynthetic, "--repeat 20 --num-batches 5", "--num-batches"},
        {kSynthetic, "--repeat 20 --display-every 5", "--display-every"},
        {kSynthetic, "--number 5", "--repeat"},
        {kSynthetic, "--skip 5", "--repeat"},
        {kSynthetic, "--instances 0", "--instances"},
        {kSynthetic, "--share-memory",
         "--share-memory needs --instances above 1"},
        {kSynthetic, "--name a/b", "--name is 'a/b'"},
        {kSynthetic, "--optimizer rmsprop", "rmsprop"},
        {kSynthetic, "--forward-only --clip-norm 1",
         "--clip-norm needs shared gradients"},
        {kSynthetic, "--model vae --data-dir x",
         "--data-dir does not suit --model vae"},
        {kSynthetic, "--model image_loading --workers 2",
         "--workers needs --data-dir"},
        {kTransformer, "", "--task pssp needs --data-dir DIR"},
        {kTransformer, "--task lm", "--task lm needs --text FILE"},
        {kTransformer, "--task lm --text x --heads 5",
         "--heads 5 does not divide"},
        {kTransformer, "--data-dir d --deal turns", "--deal"}}),
    NameOf);

}  // namespace
}  // namespace hvdlite::trainers
