#include "trainers/data/sets/protein_set.h"

#include <string>

#include "tools/support/input_error.h"
#include "trainers/data/formats/npy.h"
#include "trainers/data/sets/protein_row.h"

namespace hvdlite::trainers {
namespace {

using Shape = std::vector<int64_t>;

std::string ToString(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) {
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  }
  return "(" + text + ")";
}

void RequireProteinShape(const NpyReader& reader) {
  const Shape& shape = reader.shape();
  if (!shape.empty() && shape[0] > 0 &&
      (Shape(shape.begin() + 1, shape.end()) == Shape{kProteinRowSize} ||
       Shape(shape.begin() + 1, shape.end()) ==
           Shape{kMaxProteinLength, kProteinColumns})) {
    return;
  }
  throw InputError(reader.name() + " has shape " + ToString(shape) +
                   " in its header, before offset " +
                   std::to_string(reader.offset_bytes()) +
                   "; expected (N, 39900) or (N, 700, 57) with N > 0");
}

}  // namespace

ProteinSet ReadProteins(const std::filesystem::path& file) {
  NpyReader reader(file);
  RequireProteinShape(reader);
  ProteinSet proteins;
  std::vector<float> row(kProteinRowSize);
  while (reader.remaining() > 0) {
    const ProteinRowSource source{
        .file = reader.name(),
        .protein = static_cast<int64_t>(proteins.size()),
        .offset_bytes = reader.offset_bytes(),
        .element_bytes = ElementBytes(reader.element())};
    reader.Read(row, "protein " + std::to_string(source.protein));
    proteins.push_back(DecodeProteinRow(row, source));
  }
  return proteins;
}

void WriteProteins(const std::filesystem::path& file,
                   const ProteinSet& proteins, NpyElement element) {
  const auto count = static_cast<int64_t>(proteins.size());
  NpyWriter writer(file,
                   {.element = element, .shape = {count, kProteinRowSize}});
  std::vector<float> row(kProteinRowSize);
  for (const Protein& protein : proteins) {
    EncodeProteinRow(protein, row);
    writer.Write(row);
  }
  writer.Close();
}

}  // namespace hvdlite::trainers
