#include "trainers/data/sets/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ImageFolderTest : public ::testing::Test {
 protected:
  // Listing does not read files, so they may be empty.
  void Touch(const std::string& file) {
    const std::filesystem::path path = directory_ / file;
    std::filesystem::create_directories(path.parent_path());
    WriteFileBytes(path, "");
  }
  void TouchAll(const std::vector<std::string>& files) {
    for (const std::string& file : files) Touch(file);
  }
  void MakeThreeDomains() { TouchAll({"a/x/1.jpg", "b/x/1.jpg", "c/x/1.jpg"}); }

  ImageFolder List(const DomainSplit& split = {}) const {
    return ListImageFolder(directory_.path(), split);
  }
  auto Refuses(const DomainSplit& split, const std::string& message) const {
    EXPECT_THAT([&] { List(split); },
                ThrowsMessage<support::InputError>(HasSubstr(message)));
  }

  // Paths relative to the directory.
  std::vector<std::string> Paths(const std::vector<LabelledFile>& files) const {
    std::vector<std::string> paths;
    for (const LabelledFile& file : files) {
      paths.push_back(file.path.lexically_relative(directory_.path()));
    }
    return paths;
  }

  const TemporaryDirectory directory_;
};

TEST_F(ImageFolderTest, FilesAreSortedByDomainClassAndName) {
  TouchAll({"sketch/dog/2.png", "sketch/dog/10.png", "photo/horse/1.JPG",
            "photo/dog/b.jpeg", "photo/dog/B.jpg", "cartoon/dog/1.png"});
  const ImageFolder folder = List();
  EXPECT_THAT(folder.classes, ElementsAre("dog", "horse"));
  EXPECT_THAT(Paths(folder.train),
              ElementsAre("cartoon/dog/1.png", "photo/dog/B.jpg",
                          "photo/dog/b.jpeg", "photo/horse/1.JPG"));
  EXPECT_EQ(folder.train[2].label, 0);
  EXPECT_EQ(folder.train[3].label, 1);
  EXPECT_THAT(Paths(folder.validation),
              ElementsAre("sketch/dog/10.png", "sketch/dog/2.png"));
}

TEST_F(ImageFolderTest, LabelsAreTheSameForAnySplit) {
  TouchAll({"a/house/1.jpg", "b/dog/1.jpg", "b/house/1.jpg", "c/cat/1.jpg"});
  for (const char* validation : {"a", "b", "c"}) {
    const ImageFolder folder = List({.train = {}, .validation = {validation}});
    EXPECT_THAT(folder.classes, ElementsAre("cat", "dog", "house"));
  }
  const ImageFolder folder = List({.train = {"b"}, .validation = {"a"}});
  EXPECT_EQ(folder.train[0].label, 1);
  EXPECT_EQ(folder.validation[0].label, 2);
}

TEST_F(ImageFolderTest, HiddenAndOtherFilesAreSkipped) {
  MakeThreeDomains();
  TouchAll({".git/x/1.jpg", "a/.cache/1.jpg", "a/x/._1.jpg", "a/x/notes.txt",
            "README.jpg", "a/labels.jpg", "a/x/jpg"});
  const ImageFolder folder = List();
  EXPECT_THAT(folder.domains.train, ElementsAre("a", "b"));
  EXPECT_THAT(folder.classes, ElementsAre("x"));
  EXPECT_THAT(Paths(folder.train), ElementsAre("a/x/1.jpg", "b/x/1.jpg"));
}

TEST_F(ImageFolderTest, DirectoriesNamedLikeImagesAreSkippedButLinksAreNot) {
  MakeThreeDomains();
  TouchAll({"a/x/2.jpg/1.jpg", "b/2.jpg/1.jpg"});
  std::filesystem::create_symlink("/nonexistent", directory_ / "a/x/3.jpg");
  std::filesystem::create_symlink("4.jpg", directory_ / "a/x/4.jpg");
  std::filesystem::create_symlink("loop", directory_ / "a/loop");
  const ImageFolder folder = List();
  EXPECT_THAT(folder.classes, ElementsAre("2.jpg", "x"));
  EXPECT_THAT(Paths(folder.train),
              ElementsAre("a/x/1.jpg", "a/x/3.jpg", "a/x/4.jpg",
                          "b/2.jpg/1.jpg", "b/x/1.jpg"));
}

// The link may be a class, and the labels of later classes depend on that.
TEST_F(ImageFolderTest, UncheckableLinkIsAnErrorThatNamesIt) {
  MakeThreeDomains();
  std::filesystem::create_symlink(std::string(300, 'w'), directory_ / "a/w");
  Refuses({}, "cannot read '" + (directory_ / "a/w").string() +
                  "': File name too long");
}

TEST_F(ImageFolderTest, LastDomainIsForValidationByDefault) {
  MakeThreeDomains();
  EXPECT_EQ(List().domains,
            (DomainSplit{.train = {"a", "b"}, .validation = {"c"}}));
}

TEST_F(ImageFolderTest, TrainAndValAreForTrainingAndValidation) {
  TouchAll({"train/x/1.jpg", "val/x/1.jpg", "test/x/1.jpg", "zz/x/1.jpg"});
  EXPECT_EQ(List().domains,
            (DomainSplit{.train = {"train"}, .validation = {"val"}}));
}

TEST_F(ImageFolderTest, DomainsOfOneKindDetermineTheOtherKind) {
  MakeThreeDomains();
  EXPECT_EQ(List({.train = {}, .validation = {"a"}}).domains,
            (DomainSplit{.train = {"b", "c"}, .validation = {"a"}}));
  EXPECT_EQ(List({.train = {"b"}, .validation = {}}).domains,
            (DomainSplit{.train = {"b"}, .validation = {"a", "c"}}));
}

TEST_F(ImageFolderTest, DomainsOfBothKindsExcludeTheOthers) {
  MakeThreeDomains();
  const ImageFolder folder = List({.train = {"c"}, .validation = {"b"}});
  EXPECT_THAT(Paths(folder.train), ElementsAre("c/x/1.jpg"));
  EXPECT_THAT(Paths(folder.validation), ElementsAre("b/x/1.jpg"));
}

TEST_F(ImageFolderTest, UnknownDomainIsAnErrorThatNamesTheKnownOnes) {
  MakeThreeDomains();
  Refuses({.train = {"d"}, .validation = {}}, "no domain 'd' in '" +
                                                  directory_.path().string() +
                                                  "'; its domains are a, b, c");
  Refuses({.train = {}, .validation = {"e"}}, "no domain 'e'");
}

TEST_F(ImageFolderTest, DomainNamedTwiceIsAnError) {
  MakeThreeDomains();
  Refuses({.train = {"a", "b"}, .validation = {"b"}},
          "the domain 'b' is named twice");
  Refuses({.train = {"a", "a"}, .validation = {}},
          "the domain 'a' is named twice");
}

TEST_F(ImageFolderTest, SplitWithAnEmptyKindIsAnError) {
  MakeThreeDomains();
  Refuses({.train = {"a", "b", "c"}, .validation = {}},
          "is left for validation; its domains are a, b, c");
  Refuses({.train = {}, .validation = {"a", "b", "c"}}, "is left for training");
}

TEST_F(ImageFolderTest, SingleDomainIsAnError) {
  Touch("a/x/1.jpg");
  Refuses({}, "is left for training; its domains are a");
}

TEST_F(ImageFolderTest, DirectoryWithoutDomainsIsAnError) {
  Touch("1.jpg");
  Refuses({}, "no domain directories in '" + directory_.path().string() +
                  "'; expected DOMAIN/CLASS/*.jpg");
}

TEST_F(ImageFolderTest, DomainWithoutClassesIsAnError) {
  MakeThreeDomains();
  Touch("b2/1.jpg");
  Refuses({}, "no class directories in '" + (directory_ / "b2").string());
}

TEST_F(ImageFolderTest, ClassWithoutImagesIsAnError) {
  MakeThreeDomains();
  Touch("b/y/notes.txt");
  Refuses({}, "no images in '" + (directory_ / "b/y").string());
}

TEST_F(ImageFolderTest, MissingDirectoryIsAnError) {
  EXPECT_THAT([] { ListImageFolder("/nonexistent/pacs", {}); },
              ThrowsMessage<support::InputError>(AllOf(
                  HasSubstr("/nonexistent/pacs"), HasSubstr("No such file"))));
}

TEST(ImageDataFormatTest, AnyFileOfCifar10IsDetected) {
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"}) {
    const TemporaryDirectory directory;
    std::filesystem::create_directory(directory / "other");
    WriteFileBytes(directory / name, "");
    EXPECT_EQ(DetectImageDataFormat(directory.path()),
              ImageDataFormat::kCifar10);
  }
}

TEST(ImageDataFormatTest, ArchivesDirectoryOfCifar10IsDetected) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "cifar-10-batches-bin");
  EXPECT_EQ(DetectImageDataFormat(directory.path()), ImageDataFormat::kCifar10);
}

TEST(ImageDataFormatTest, OtherDirectoriesHoldImages) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "photo");
  WriteFileBytes(directory / "README", "");
  EXPECT_EQ(DetectImageDataFormat(directory.path()), ImageDataFormat::kFolder);
}

TEST(ImageDataFormatTest, BrokenLinksAreIgnored) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "photo");
  std::filesystem::create_symlink("loop", directory / "loop");
  std::filesystem::create_symlink("/nonexistent", directory / "link");
  EXPECT_EQ(DetectImageDataFormat(directory.path()), ImageDataFormat::kFolder);
}

TEST(ImageDataFormatTest, DirectoryWithNeitherIsAnErrorThatNamesBoth) {
  const TemporaryDirectory directory;
  WriteFileBytes(directory / "a.jpg", "");
  EXPECT_THAT([&] { DetectImageDataFormat(directory.path()); },
              ThrowsMessage<support::InputError>(AllOf(
                  HasSubstr(directory.path().string()),
                  HasSubstr("data_batch_*.bin"), HasSubstr("DOMAIN/CLASS"))));
}

TEST(ImageDataFormatTest, MissingDirectoryIsAnError) {
  EXPECT_THAT([] { DetectImageDataFormat("/nonexistent/data"); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("/nonexistent/data"),
                        HasSubstr("No such file or directory"))));
}

}  // namespace
}  // namespace hvdlite::trainers
