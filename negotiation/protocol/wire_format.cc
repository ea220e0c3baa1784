#include "negotiation/protocol/wire_format.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"

namespace hvdlite::negotiation {
namespace {

// Whether all values are known; a newer version may have others.
bool IsKnown(const wire::Request& message) {
  if (message.collective() >= kNumCollectives ||
      message.op() >= collective::kNumReduceOps ||
      message.compression() >= collective::kNumCompressions) {
    return false;
  }
  const auto op = static_cast<collective::ReduceOp>(message.op());
  return absl::c_all_of(message.tensors(), [op](const wire::Tensor& tensor) {
    return tensor.dtype() < collective::kNumDataTypes &&
           HasOp(static_cast<collective::DataType>(tensor.dtype()), op);
  });
}

// Maps small numbers of either sign to small numbers.
uint64_t Zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63);
}

int64_t FromZigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

constexpr uint64_t kMaxId = std::numeric_limits<uint32_t>::max();

constexpr int64_t kAgeUnitNanos = 100'000;  // as messages.proto says
// This is a century: times stay in bounds, whatever a message contains.
constexpr uint64_t kMaxAge = uint64_t{1} << 45;

// How long before `now_ns` something was submitted, in the unit of messages.
uint64_t AgeAt(int64_t now_ns, int64_t submitted_ns) {
  return static_cast<uint64_t>(
      std::max<int64_t>((now_ns - submitted_ns) / kAgeUnitNanos, 0));
}

// Whether the bytes of the tensors and of their rows can be counted, even if
// there are no rows: no length is negative, except kAnyLength, and nothing
// overflows.
bool HasSize(const Request& request) {
  int64_t total = 0;
  for (const TensorSpec& tensor : request.tensors) {
    auto bytes = static_cast<int64_t>(collective::SizeOf(tensor.dtype));
    int64_t row_bytes = bytes;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      const int64_t length = tensor.shape[i];
      if (length == kAnyLength) continue;
      if (length < 0 || __builtin_mul_overflow(bytes, length, &bytes) ||
          (i > 0 && __builtin_mul_overflow(row_bytes, length, &row_bytes))) {
        return false;
      }
    }
    if (__builtin_add_overflow(total, bytes, &total)) return false;
  }
  return true;
}

}  // namespace

void ToWire(const Request& request, wire::Request* message) {
  message->set_name(request.name);
  message->set_process_set(request.process_set);
  message->set_collective(static_cast<uint32_t>(request.collective));
  for (const TensorSpec& tensor : request.tensors) {
    wire::Tensor* added = message->add_tensors();
    added->set_dtype(static_cast<uint32_t>(tensor.dtype));
    added->mutable_shape()->Assign(tensor.shape.begin(), tensor.shape.end());
    added->mutable_strides()->Assign(tensor.strides.begin(),
                                     tensor.strides.end());
  }
  message->set_op(static_cast<uint32_t>(request.op));
  message->set_average(request.average);
  message->set_compression(static_cast<uint32_t>(request.compression));
  message->set_prescale_factor(request.prescale_factor);
  message->set_postscale_factor(request.postscale_factor);
  message->set_root_rank(request.root_rank);
  message->set_differentiable(request.differentiable);
  message->mutable_members()->Assign(request.members.begin(),
                                     request.members.end());
  message->set_removed(request.removed);
  message->set_local_error(request.local_error);
}

absl::StatusOr<Request> FromWire(const wire::Request& message) {
  if (!IsKnown(message)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "request '", message.name(),
        "' has a collective, dtype, op or compression that this version of "
        "hvdlite does not know; all ranks must run the same version"));
  }
  Request request;
  request.name = message.name();
  request.process_set = message.process_set();
  request.collective = static_cast<Collective>(message.collective());
  for (const wire::Tensor& tensor : message.tensors()) {
    TensorSpec& added = request.tensors.emplace_back();
    added.dtype = static_cast<collective::DataType>(tensor.dtype());
    added.shape.assign(tensor.shape().begin(), tensor.shape().end());
    added.strides.assign(tensor.strides().begin(), tensor.strides().end());
  }
  request.op = static_cast<collective::ReduceOp>(message.op());
  request.average = message.average();
  request.compression =
      static_cast<collective::Compression>(message.compression());
  request.prescale_factor = message.prescale_factor();
  request.postscale_factor = message.postscale_factor();
  request.root_rank = message.root_rank();
  request.differentiable = message.differentiable();
  request.members.assign(message.members().begin(), message.members().end());
  request.removed = message.removed();
  request.local_error = message.local_error();
  if (!HasSize(request)) {
    return absl::InvalidArgumentError(
        absl::StrCat("request '", request.name,
                     "' has an impossible shape; the message is damaged"));
  }
  return request;
}

void ToWire(const RankRuns& ranks, wire::Ranks* message) {
  for (const RankRuns::Run& run : ranks.runs()) {
    message->add_runs(static_cast<uint32_t>(run.first));
    message->add_runs(static_cast<uint32_t>(run.last));
  }
  message->set_unnamed(static_cast<uint32_t>(ranks.unnamed()));
}

RankRuns FromWire(const wire::Ranks& message, int world_size) {
  const auto size = static_cast<uint32_t>(world_size);
  RankRuns ranks;
  for (int i = 0; i + 1 < message.runs_size(); i += 2) {
    const uint32_t first = message.runs(i);
    const uint32_t last = message.runs(i + 1);
    if (first > last || last >= size) continue;
    ranks.Add({static_cast<int>(first), static_cast<int>(last)});
  }
  ranks.AddUnnamed(static_cast<int>(std::min(message.unnamed(), size)));
  return ranks;
}

void ToWire(const ProcessLook& look, wire::ProcessLook* message) {
  message->set_state(static_cast<unsigned char>(look.state));
  message->set_sleeps_in(look.sleeps_in);
  message->set_cpu_ms(static_cast<uint64_t>(look.cpu_ms));
  message->set_over_ms(static_cast<uint64_t>(look.over_ms));
  message->set_io_bytes(static_cast<uint64_t>(look.io_bytes));
  message->set_waits_for_ranks(look.waits_for_ranks);
  message->set_from_outside(look.from_outside);
}

ProcessLook FromWire(const wire::ProcessLook& message) {
  // All of these are in bounds, whatever a message contains.
  const auto bounded = [](uint64_t value) {
    return static_cast<int64_t>(std::min(value, uint64_t{1} << 60));
  };
  ProcessLook look;
  look.state = static_cast<char>(message.state() < 128 ? message.state() : 0);
  look.sleeps_in = message.sleeps_in();
  look.cpu_ms = bounded(message.cpu_ms());
  look.over_ms = bounded(message.over_ms());
  look.io_bytes = bounded(message.io_bytes());
  look.waits_for_ranks = message.waits_for_ranks();
  look.from_outside = message.from_outside();
  return look;
}

void AppendIds(absl::Span<const uint32_t> ids, NumberField* field) {
  int64_t expected = 0;  // the id after the last run
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + uint64_t{1}) ++end;
    const bool several = end - begin > 1;
    field->Add(Zigzag(ids[begin] - expected) << 1 | (several ? 1 : 0));
    if (several) field->Add(end - begin - 2);
    expected = int64_t{ids[end - 1]} + 1;
    begin = end;
  }
}

bool VisitIds(const NumberField& field,
              absl::FunctionRef<bool(uint32_t id)> visit) {
  int64_t expected = 0;
  for (int i = 0; i < field.size(); ++i) {
    const bool several = (field.Get(i) & 1) != 0;
    // Neither term comes near the limits of int64_t.
    const int64_t offset = FromZigzag(field.Get(i) >> 1);
    if (offset < -static_cast<int64_t>(kMaxId) - 1 ||
        offset > static_cast<int64_t>(kMaxId)) {
      return false;
    }
    const int64_t first = expected + offset;
    uint64_t more = 0;  // ids after the first
    if (several) {
      if (++i == field.size() || field.Get(i) >= kMaxId) return false;
      more = field.Get(i) + 1;
    }
    if (first < 0 || static_cast<uint64_t>(first) + more > kMaxId) return false;
    for (uint64_t id = first; id <= static_cast<uint64_t>(first) + more; ++id) {
      if (!visit(static_cast<uint32_t>(id))) return false;
    }
    expected = first + static_cast<int64_t>(more) + 1;
  }
  return true;
}

void AppendValues(absl::Span<const uint64_t> values, NumberField* field) {
  for (size_t begin = 0; begin < values.size();) {
    size_t end = begin + 1;
    while (end < values.size() && values[end] == values[begin]) ++end;
    field->Reserve(field->size() + 2);
    field->Add(values[begin]);
    field->Add(end - begin);
    begin = end;
  }
}

bool ValueReader::Next(uint64_t* value) {
  while (left_ == 0) {
    if (next_ + 1 >= field_.size()) return false;
    value_ = field_.Get(next_);
    left_ = field_.Get(next_ + 1);
    next_ += 2;
  }
  --left_;
  *value = value_;
  return true;
}

int64_t TimeOfAge(int64_t now_ns, uint64_t age) {
  return now_ns - static_cast<int64_t>(std::min(age, kMaxAge)) * kAgeUnitNanos;
}

bool VisitReady(const wire::Ready& message, int64_t now_ns,
                absl::FunctionRef<bool(const ReadyById&)> visit) {
  ValueReader last_ranks(message.last_ranks());
  ValueReader ages(message.ages());
  ValueReader steps(message.steps());
  const bool all = VisitIds(message.ids(), [&](uint32_t id) {
    uint64_t last_rank = 0;
    uint64_t age = 0;
    uint64_t step = 0;
    if (!last_ranks.Next(&last_rank) || !ages.Next(&age)) return false;
    if (message.steps_size() > 0 && !steps.Next(&step)) return false;
    return visit({id, static_cast<int>(last_rank), TimeOfAge(now_ns, age),
                  static_cast<uint32_t>(step)});
  });
  return all && last_ranks.done() && ages.done() && steps.done();
}

void ReportDraft::AddReady(const TensorSlot& slot, int64_t now_ns) {
  if (slot.variants.empty()) {
    ReadyIds& ready = slot.present ? ready_ : absent_;
    ready.ids.push_back(slot.registered->id);
    ready.last_ranks.push_back(static_cast<uint64_t>(slot.last_rank));
    ready.last_ns.push_back(slot.last_ns);
    ready.steps.push_back(slot.step);
    ready.any_step = ready.any_step || slot.step != 0;
    // The number of rows that will arrive is unknown, so the operation starts.
    coalesced_bytes_ +=
        slot.registered->request.rows_differ()
            ? worth_bytes_
            : slot.registered->request_bytes;
  }
  for (const Variant& variant : slot.variants) {
    wire::Announcement* announced = rest_.add_announced();
    ToWire(variant.request, announced->mutable_request());
    // If all ranks agree, the parent knows which ranks they are. So the message
    // does not grow with the subtree.
    if (slot.variants.size() > 1) {
      ToWire(variant.ranks, announced->mutable_ranks());
    }
    announced->set_absent(!slot.present);
    announced->set_last_rank(slot.last_rank);
    announced->set_age(AgeAt(now_ns, slot.last_ns));
    announced->set_step(variant.step);
  }
  if (slot.urgent) AddUrgent(slot);
}

void ReportDraft::AddUrgent(const TensorSlot& slot) {
  if (slot.variants.empty()) {
    urgent_ids_.push_back(slot.registered->id);
  } else {
    rest_.add_urgent_names(slot.name);
  }
}

bool ReportDraft::IsDue() const {
  return coalesced_bytes_ >= worth_bytes_ || !urgent_ids_.empty() ||
         rest_.ByteSizeLong() > 0;
}

void ReportDraft::MoveTo(wire::Ready* message, int64_t now_ns,
                         ReadyIds& ready) {
  absl::InlinedVector<uint64_t, 8> ages;
  ages.reserve(ready.ids.size());
  for (const int64_t last_ns : ready.last_ns) {
    ages.push_back(AgeAt(now_ns, last_ns));
  }
  AppendIds(ready.ids, message->mutable_ids());
  AppendValues(ready.last_ranks, message->mutable_last_ranks());
  AppendValues(ages, message->mutable_ages());
  if (std::exchange(ready.any_step, false)) {
    AppendValues(ready.steps, message->mutable_steps());
  }
  ready.ids.clear();
  ready.last_ranks.clear();
  ready.last_ns.clear();
  ready.steps.clear();
}

wire::Report ReportDraft::Take(int64_t now_ns) {
  if (!ready_.ids.empty()) MoveTo(rest_.mutable_ready(), now_ns, ready_);
  if (!absent_.ids.empty()) MoveTo(rest_.mutable_absent(), now_ns, absent_);
  coalesced_bytes_ = 0;
  AppendIds(urgent_ids_, rest_.mutable_urgent_ids());
  urgent_ids_.clear();
  AppendIds(released_ids_, rest_.mutable_released_ids());
  released_ids_.clear();
  return std::exchange(rest_, {});
}

}  // namespace hvdlite::negotiation
