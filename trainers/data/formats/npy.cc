#include "trainers/data/formats/npy.h"

#include <algorithm>
#include <bit>

namespace hvdlite::trainers {

static_assert(std::endian::native == std::endian::little,
              "elements are read and written as they are in memory");

NpyReader::NpyReader(const std::filesystem::path& file)
    : reader_(file),
      header_(ReadNpyHeader(reader_)),
      remaining_(ElementCount(header_.shape)) {
  if (remaining_ == 0) reader_.ExpectEnd();
}

void NpyReader::Read(std::span<float> values, std::string_view what) {
  if (header_.element == NpyElement::kFloat32) {
    reader_.ReadExactly(std::as_writable_bytes(values), what);
  } else {
    doubles_.resize(values.size());
    reader_.ReadExactly(std::as_writable_bytes(std::span(doubles_)), what);
    std::transform(doubles_.begin(), doubles_.end(), values.begin(),
                   [](double value) { return static_cast<float>(value); });
  }
  remaining_ -= static_cast<int64_t>(values.size());
  if (remaining_ == 0 && !values.empty()) reader_.ExpectEnd();
}

NpyWriter::NpyWriter(const std::filesystem::path& file, const NpyHeader& header)
    : writer_(file), element_(header.element) {
  WriteNpyHeader(writer_, header);
}

void NpyWriter::Write(std::span<const float> values) {
  if (element_ == NpyElement::kFloat32) {
    writer_.Write(std::as_bytes(values));
  } else {
    const std::vector<double> doubles(values.begin(), values.end());
    writer_.Write(std::as_bytes(std::span(doubles)));
  }
}

void NpyWriter::Close() { writer_.Close(); }

NpyArray ReadNpy(const std::filesystem::path& file) {
  // Grows with what the file really holds: its header may promise anything.
  constexpr int64_t kBlockElements = 1 << 18;
  NpyReader reader(file);
  NpyArray array{.shape = reader.shape(), .values = {}};
  while (reader.remaining() > 0) {
    const auto count =
        static_cast<size_t>(std::min(reader.remaining(), kBlockElements));
    array.values.resize(array.values.size() + count);
    reader.Read(std::span(array.values).last(count), "the elements");
  }
  return array;
}

void WriteNpy(const std::filesystem::path& file, const NpyArray& array,
              NpyElement element) {
  NpyWriter writer(file, {.element = element, .shape = array.shape});
  writer.Write(array.values);
  writer.Close();
}

}  // namespace hvdlite::trainers
