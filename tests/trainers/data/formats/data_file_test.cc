#include "trainers/data/formats/data_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

std::string Read(ByteReader& reader, size_t size_bytes,
                 std::string_view what = "the text") {
  std::string bytes(size_bytes, '\0');
  reader.ReadExactly(std::as_writable_bytes(std::span(bytes)), what);
  return bytes;
}

// Bytes that cannot be compressed much.
std::string ManyBytes() {
  std::string bytes;
  uint32_t state = 1;
  for (int i = 0; i < 1000000; ++i) {
    state = state * 1664525 + 1013904223;
    bytes += static_cast<char>(state >> 24);
  }
  return bytes;
}

class PlainOrGzippedTest : public ::testing::TestWithParam<const char*> {
 protected:
  const TemporaryDirectory directory_;
  const std::filesystem::path file_ = directory_ / GetParam();
};

INSTANTIATE_TEST_SUITE_P(Files, PlainOrGzippedTest,
                         ::testing::Values("data", "data.gz"),
                         [](const auto& info) {
                           return info.index == 0 ? "Plain" : "Gzipped";
                         });

TEST_P(PlainOrGzippedTest, ReadsBackWhatWasWritten) {
  const std::string bytes = ManyBytes();
  WritePlainOrGzipped(file_, bytes);
  ByteReader reader(file_);
  EXPECT_EQ(Read(reader, 10), bytes.substr(0, 10));
  EXPECT_EQ(reader.offset_bytes(), 10);
  EXPECT_EQ(Read(reader, bytes.size() - 10), bytes.substr(10));
  EXPECT_EQ(reader.offset_bytes(), 1000000);
  EXPECT_NO_THROW(reader.ExpectEnd());
}

TEST_P(PlainOrGzippedTest, EarlyEndIsAnErrorThatNamesThePart) {
  WritePlainOrGzipped(file_, "abcdefg");
  ByteReader reader(file_);
  Read(reader, 3);
  EXPECT_THAT(
      [&] { Read(reader, 6, "the pixels of image 7"); },
      ThrowsMessage<support::InputError>("'" + file_.string() +
                                         "' ends at offset 7, in the pixels of "
                                         "image 7: expected 2 more bytes"));
}

TEST_P(PlainOrGzippedTest, BytesAfterTheEndAreAnErrorThatNamesTheOffset) {
  WritePlainOrGzipped(file_, "abcdefg");
  ByteReader reader(file_);
  Read(reader, 6);
  EXPECT_THAT([&] { reader.ExpectEnd(); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr(file_.string()), HasSubstr("offset 6"))));
}

TEST_P(PlainOrGzippedTest, EmptyFileIsRead) {
  WritePlainOrGzipped(file_, "");
  ByteReader reader(file_);
  EXPECT_NO_THROW(reader.ExpectEnd());
}

TEST(ByteReaderTest, ContentDecidesWhetherAFileIsGzipped) {
  const TemporaryDirectory directory;
  WriteFileBytes(directory / "plain.gz", "abc");
  ByteReader plain(directory / "plain.gz");
  EXPECT_EQ(Read(plain, 3), "abc");
  WritePlainOrGzipped(directory / "data.gz", "abc");
  std::filesystem::rename(directory / "data.gz", directory / "data");
  ByteReader gzipped(directory / "data");
  EXPECT_EQ(Read(gzipped, 3), "abc");
}

// A file of the kernel that fails with EIO.
constexpr char kFailing[] = "/proc/self/mem";

TEST(CannotReadTest, TemporaryErrorsAreNotInputErrors) {
  for (const int code :
       {ENOENT, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG, EACCES}) {
    EXPECT_THAT(
        [&] {
          ThrowCannotRead("cannot read 'a'", {code, std::generic_category()});
        },
        ThrowsMessage<support::InputError>(std::string("cannot read 'a': ") +
                                           std::strerror(code)));
  }
  for (const int code : {EIO, ESTALE, EMFILE, ENFILE, ENOMEM, ENOTCONN}) {
    try {
      ThrowCannotRead("cannot read 'a'", {code, std::generic_category()});
    } catch (const std::exception& error) {
      EXPECT_EQ(error.what(),
                std::string("cannot read 'a': ") + std::strerror(code));
      EXPECT_EQ(dynamic_cast<const support::InputError*>(&error), nullptr);
    }
  }
}

TEST(CannotReadTest, InputOutputErrorsAreNotInputErrors) {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink(kFailing, directory / "data");
  const auto expect = [&](const std::function<void()>& read) {
    EXPECT_THAT(read, ThrowsMessage<std::runtime_error>(
                          AllOf(HasSubstr((directory / "data").string()),
                                EndsWith("Input/output error"))));
    try {
      read();
    } catch (const support::InputError& error) {
      ADD_FAILURE() << error.what();
    } catch (const std::exception&) {
    }
  };
  expect([&] { ReadWholeFile(directory / "data"); });
  expect([&] {
    ByteReader reader(directory / "data");
    Read(reader, 3);
  });
}

TEST(WholeFileTest, ReadsRegularAndVirtualFiles) {
  const TemporaryDirectory directory;
  const std::string text = ManyBytes();
  for (const std::string& bytes : {std::string(), text}) {
    WriteFileBytes(directory / "data", bytes);
    const std::vector<uint8_t> whole = ReadWholeFile(directory / "data");
    EXPECT_EQ(std::string(whole.begin(), whole.end()), bytes);
  }
  // A file without a size.
  EXPECT_GT(ReadWholeFile("/proc/self/status").size(), 100U);
  EXPECT_THAT([&] { ReadWholeFile(directory.path()); },
              ThrowsMessage<support::InputError>(EndsWith("Is a directory")));
}

TEST(ByteReaderTest, MissingFileIsAnError) {
  EXPECT_THAT([] { ByteReader("/nonexistent/data.gz"); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("'/nonexistent/data.gz'"),
                        HasSubstr("No such file or directory"))));
}

TEST(ByteReaderTest, DirectoryIsAnError) {
  const TemporaryDirectory directory;
  EXPECT_THAT(
      [&] { ByteReader reader(directory.path()); },
      ThrowsMessage<support::InputError>(AllOf(
          HasSubstr(directory.path().string()), HasSubstr("is a directory"))));
}

TEST(ByteReaderTest, TruncatedGzipFileIsAnErrorThatNamesTheOffset) {
  const TemporaryDirectory directory;
  WritePlainOrGzipped(directory / "data.gz", ManyBytes());
  const std::string compressed = FileBytes(directory / "data.gz");
  WriteFileBytes(directory / "data.gz",
                 compressed.substr(0, compressed.size() / 2));
  ByteReader reader(directory / "data.gz");
  EXPECT_THAT([&] { Read(reader, 1000000); },
              ThrowsMessage<support::InputError>(
                  AllOf(StartsWith("cannot read '"), HasSubstr("data.gz"),
                        HasSubstr("at offset "), Not(HasSubstr("offset 0:")),
                        HasSubstr("gzip data is corrupt"))));
}

TEST(ByteReaderTest, CorruptGzipDataIsAnError) {
  const TemporaryDirectory directory;
  WritePlainOrGzipped(directory / "data.gz", std::string(1000, 'a'));
  std::string compressed = FileBytes(directory / "data.gz");
  compressed[10] = static_cast<char>(0xff);  // an invalid type of block
  WriteFileBytes(directory / "data.gz", compressed);
  ByteReader reader(directory / "data.gz");
  EXPECT_THAT(
      [&] { Read(reader, 1000); },
      ThrowsMessage<support::InputError>(HasSubstr("gzip data is corrupt")));
}

TEST(ByteReaderTest, WrongChecksumIsAnErrorAtTheEnd) {
  const TemporaryDirectory directory;
  WritePlainOrGzipped(directory / "data.gz", "abc");
  std::string compressed = FileBytes(directory / "data.gz");
  compressed[compressed.size() - 8] ^= 1;  // CRC-32, before the length
  WriteFileBytes(directory / "data.gz", compressed);
  EXPECT_THAT(
      [&] {
        ByteReader reader(directory / "data.gz");
        Read(reader, 3);
        reader.ExpectEnd();
      },
      ThrowsMessage<support::InputError>(
          AllOf(HasSubstr("gzip data is corrupt"),
                HasSubstr("incorrect data check"))));
}

TEST(ByteWriterTest, GzipsFilesNamedGzWithoutNameOrTime) {
  const TemporaryDirectory directory;
  WritePlainOrGzipped(directory / "a", "abc");
  EXPECT_EQ(FileBytes(directory / "a"), "abc");
  WritePlainOrGzipped(directory / "a.gz", "abc");
  const std::string bytes = FileBytes(directory / "a.gz");
  // The header has magic number, deflate, no flags, no time (RFC 1952, section
  // 2.3).
  EXPECT_THAT(bytes, StartsWith(std::string("\x1f\x8b\x08\0\0\0\0\0", 8)));
  WritePlainOrGzipped(directory / "b.gz", "abc");
  EXPECT_EQ(FileBytes(directory / "b.gz"), bytes);
}

TEST(ByteWriterTest, FileThatCannotBeCreatedIsAnErrorThatNamesIt) {
  EXPECT_THAT([] { ByteWriter("/nonexistent/data.gz"); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("'/nonexistent/data.gz'"),
                        HasSubstr("No such file or directory"))));
}

TEST(ByteWriterTest, FullDiskIsAnErrorByCloseAtTheLatest) {
  const TemporaryDirectory directory;
  for (const char* const name : {"data", "data.gz"}) {
    std::filesystem::create_symlink("/dev/full", directory / name);
    EXPECT_THAT([&] { WritePlainOrGzipped(directory / name, "abc"); },
                ThrowsMessage<support::InputError>(AllOf(
                    HasSubstr(name), EndsWith("No space left on device"))));
    EXPECT_THAT([&] { WritePlainOrGzipped(directory / name, ManyBytes()); },
                ThrowsMessage<support::InputError>(
                    EndsWith("No space left on device")));
  }
}

}  // namespace
}  // namespace hvdlite::trainers
