// Runs the programs that generate data as a user does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/formats/mnist.h"
#include "trainers/data/formats/npy.h"
#include "trainers/data/sets/image_folder.h"
#include "trainers/data/sets/protein_set.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Le;
using ::testing::SizeIs;

const std::string kPrograms = HVDLITE_TEST_BIN_DIR "/";

class GeneratorsTest : public ::testing::Test {
 protected:
  // Runs a program with --output and returns its exit status. messages()
  // returns its output.
  int Run(const std::string& command) const {
    const int status =
        system((kPrograms + command + " --output " + output_.string() + " >" +
                log_.string() + " 2>&1")
                   .c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string messages() const { return FileBytes(log_); }

  // Runs a program with a new directory and returns the files that it wrote.
  std::map<std::string, std::string> FilesOf(const std::string& command) const {
    std::filesystem::remove_all(output_);
    EXPECT_EQ(Run(command), 0) << messages();
    std::map<std::string, std::string> files;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(output_)) {
      if (!entry.is_regular_file()) continue;
      files[entry.path().lexically_relative(output_)] = FileBytes(entry.path());
    }
    return files;
  }

  const TemporaryDirectory directory_;
  const std::filesystem::path output_ = directory_ / "made/on/demand";
  const std::filesystem::path log_ = directory_ / "log";
};

TEST_F(GeneratorsTest, PsspFilesHaveTheRequestedLengths) {
  EXPECT_THAT(FilesOf("generate_pssp --proteins 60 --test-proteins 3 "
                      "--min-length 5 --max-length 9"),
              ElementsAre(Key("cb513+profile_split1.npy.gz"),
                          Key("cullpdb+profile_6133.npy.gz")));
  EXPECT_THAT(messages(), HasSubstr("wrote 60 and 3 proteins"));
  const ProteinSplit split = ReadProteinSplit(output_);
  EXPECT_THAT(split.train, SizeIs(60 * 5600 / 6133));
  for (const Protein& protein : split.train) {
    EXPECT_THAT(protein.residues, SizeIs(AllOf(Ge(5U), Le(9U))));
  }
  EXPECT_THAT(ReadCb513(output_), SizeIs(3));
}

TEST_F(GeneratorsTest, FilteredPsspFilesAreTrainingAndTestSet) {
  EXPECT_THAT(
      FilesOf("generate_pssp --filtered --proteins 7 --test-proteins 3"),
      ElementsAre(Key("cb513+profile_split1.npy.gz"),
                  Key("cullpdb+profile_6133_filtered.npy.gz")));
  const ProteinSplit split = ReadProteinSplit(output_);
  EXPECT_THAT(split.train, SizeIs(7));
  EXPECT_THAT(split.test, SizeIs(3));
}

TEST_F(GeneratorsTest, PsspFilesHaveTheRequestedFormat) {
  EXPECT_THAT(FilesOf("generate_pssp --proteins 2 --test-proteins 1 --plain "
                      "--format f8"),
              ElementsAre(Key("cb513+profile_split1.npy"),
                          Key("cullpdb+profile_6133.npy")));
  const NpyReader reader(output_ / "cullpdb+profile_6133.npy");
  EXPECT_EQ(reader.element(), NpyElement::kFloat64);
  EXPECT_THAT(reader.shape(), ElementsAre(2, 39900));
}

TEST_F(GeneratorsTest, MnistFilesAreReadable) {
  EXPECT_THAT(FilesOf("generate_mnist --train-images 30 --test-images 20"),
              ElementsAre(Key("t10k-images-idx3-ubyte.gz"),
                          Key("t10k-labels-idx1-ubyte.gz"),
                          Key("train-images-idx3-ubyte.gz"),
                          Key("train-labels-idx1-ubyte.gz")));
  EXPECT_THAT(messages(), HasSubstr("wrote 30 training and 20 test images"));
  EXPECT_EQ(ReadMnist(output_, MnistSplit::kTrain).size(), 30);
  EXPECT_EQ(ReadMnist(output_, MnistSplit::kTest).size(), 20);
  EXPECT_THAT(FilesOf("generate_mnist --test-images 1 --plain"),
              Contains(Key("t10k-labels-idx1-ubyte")));
}

TEST_F(GeneratorsTest, FullMnistFilesHaveTheSizesOfTheRealOnes) {
  ASSERT_EQ(Run("generate_mnist --full"), 0) << messages();
  const auto size = [&](const char* name) {
    return std::filesystem::file_size(output_ / name);
  };
  EXPECT_EQ(size("train-images-idx3-ubyte"), 47040016);
  EXPECT_EQ(size("train-labels-idx1-ubyte"), 60008);
  EXPECT_EQ(size("t10k-images-idx3-ubyte"), 7840016);
  EXPECT_EQ(size("t10k-labels-idx1-ubyte"), 10008);
}

TEST_F(GeneratorsTest, PacsFilesHaveDomainsAndClasses) {
  for (const std::string format : {"jpeg", "png"}) {
    std::filesystem::remove_all(output_);
    ASSERT_EQ(
        Run("generate_pacs --images-per-class 2 --size 9 --format " + format),
        0)
        << messages();
    EXPECT_THAT(messages(),
                HasSubstr("wrote 56 images of 7 classes in 4 domains"));
    const ImageFolder directory = ListImageFolder(output_, {});
    EXPECT_THAT(directory.classes,
                ElementsAre("dog", "elephant", "giraffe", "guitar", "horse",
                            "house", "person"));
    EXPECT_THAT(directory.domains.train,
                ElementsAre("art_painting", "cartoon", "photo"));
    EXPECT_THAT(directory.domains.validation, ElementsAre("sketch"));
    EXPECT_THAT(directory.train, SizeIs(3 * 7 * 2));
    for (const LabelledFile& file : directory.validation) {
      EXPECT_EQ(ReadImageFile(file.path).height, 9);
    }
  }
}

TEST_F(GeneratorsTest, FullPacsHasThePublishedNumberOfImagesPerDomain) {
  ASSERT_EQ(Run("generate_pacs --full --size 8"), 0) << messages();
  EXPECT_THAT(messages(),
              HasSubstr("wrote 9991 images of 7 classes in 4 domains"));
  const ImageFolder directory = ListImageFolder(output_, {});
  EXPECT_THAT(directory.train, SizeIs(2048 + 2344 + 1670));
  EXPECT_THAT(directory.validation, SizeIs(3929));
}

TEST_F(GeneratorsTest, FilesDependOnlyOnTheSeed) {
  for (const std::string command :
       {"generate_pssp --proteins 5 --test-proteins 5 --seed ",
        "generate_mnist --train-images 20 --test-images 20 --plain --seed ",
        "generate_cifar10 --train-images 20 --test-images 20 --seed ",
        "generate_pacs --images-per-class 1 --size 9 --seed ",
        "generate_pacs --images-per-class 1 --size 9 --format png --seed "}) {
    const auto files = FilesOf(command + "1");
    EXPECT_EQ(FilesOf(command + "1"), files);
    EXPECT_NE(FilesOf(command + "2"), files);
  }
}

TEST_F(GeneratorsTest, TestSetsDifferFromTrainingSets) {
  FilesOf("generate_pssp --proteins 3 --test-proteins 3 --plain");
  EXPECT_NE(FileBytes(output_ / "cullpdb+profile_6133.npy"),
            FileBytes(output_ / "cb513+profile_split1.npy"));
  FilesOf("generate_mnist --train-images 3 --test-images 3 --plain");
  EXPECT_NE(FileBytes(output_ / "train-images-idx3-ubyte"),
            FileBytes(output_ / "t10k-images-idx3-ubyte"));
}

TEST_F(GeneratorsTest, WrongFlagsAreErrors) {
  for (const std::string command :
       {"generate_pssp --proteins 0", "generate_pssp --max-length 701",
        "generate_pssp --min-length 0", "generate_pssp --format f2",
        "generate_pssp --min-length 9 --max-length 8",
        "generate_mnist --train-images 0", "generate_mnist --colour",
        "generate_mnist --full --train-images 3",
        "generate_cifar10 --files 5 --train-images 4",
        "generate_pacs --images-per-class 0", "generate_pacs --size 7",
        "generate_pacs --full --images-per-class 3",
        "generate_pacs --format gif"}) {
    EXPECT_EQ(Run(command), support::kInputErrorExitCode) << command;
  }
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(GeneratorsTest, ExistingFilesAreReplacedOnlyWithOverwrite) {
  for (const std::string command :
       {"generate_pssp --proteins 3 --test-proteins 3 --seed ",
        "generate_mnist --train-images 3 --test-images 3 --seed ",
        "generate_cifar10 --train-images 5 --test-images 3 --seed ",
        "generate_pacs --images-per-class 1 --size 9 --seed "}) {
    const auto before = FilesOf(command + "1");
    EXPECT_EQ(Run(command + "2"), support::kInputErrorExitCode) << command;
    EXPECT_THAT(messages(), HasSubstr("--overwrite")) << command;
    for (const auto& [name, bytes] : before) {
      EXPECT_EQ(FileBytes(output_ / name), bytes) << name;
    }
    EXPECT_EQ(Run(command + "2 --overwrite"), 0) << messages();
    EXPECT_NE(FileBytes(output_ / before.begin()->first),
              before.begin()->second);
  }
}

TEST_F(GeneratorsTest, OlderFilesThatHideNewOnesAreAnError) {
  for (const auto& [first, second] :
       {std::pair("generate_pssp --proteins 3 --test-proteins 3 --plain",
                  "generate_pssp --proteins 3 --test-proteins 3"),
        std::pair("generate_mnist --train-images 3 --test-images 3",
                  "generate_mnist --train-images 3 --test-images 3 --plain"),
        std::pair("generate_pacs --images-per-class 2 --size 9",
                  "generate_pacs --images-per-class 1 --size 9")}) {
    FilesOf(first);
    EXPECT_EQ(Run(std::string(second) + " --overwrite"),
              support::kInputErrorExitCode)
        << second;
    EXPECT_THAT(messages(), HasSubstr("belongs to another data set")) << second;
  }
}

TEST_F(GeneratorsTest, OlderFilesBesideNewOnesAreAnError) {
  FilesOf("generate_cifar10 --train-images 6 --test-images 1 --files 3");
  const std::string fewer =
      "generate_cifar10 --train-images 4 --test-images 1 --files 2 "
      "--overwrite";
  EXPECT_EQ(Run(fewer), support::kInputErrorExitCode);
  EXPECT_THAT(messages(), HasSubstr("data_batch_3.bin"));
  std::filesystem::remove(output_ / "data_batch_3.bin");
  EXPECT_EQ(Run(fewer), 0) << messages();
}

TEST_F(GeneratorsTest, OutputThatCannotBeCreatedIsAnErrorThatNamesIt) {
  WriteFileBytes(directory_ / "made", "a file");
  for (const std::string program : {"generate_pssp", "generate_mnist",
                                    "generate_cifar10", "generate_pacs"}) {
    EXPECT_EQ(Run(program), support::kInputErrorExitCode);
    EXPECT_THAT(messages(),
                HasSubstr(program + ": cannot create '" + output_.string()));
  }
}

}  // namespace
}  // namespace hvdlite::trainers
