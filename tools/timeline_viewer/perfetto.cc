#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "timeline/read/trace_file.h"
#include "tools/timeline_viewer/convert.h"
#include "tools/timeline_viewer/perfetto_trace.pb.h"
#include "tools/timeline_viewer/raw_trace.h"

namespace hvdlite::timeline_viewer {
namespace {

using perfetto::TrackEvent;

// All packets are of one sequence, so that they share their names.
constexpr uint32_t kSequence = 1;
constexpr uint32_t kNamesBegin = 1;
constexpr uint32_t kNeedsNames = 2;
constexpr uint32_t kMonotonicClock = 3;
constexpr uint32_t kBootClock = 6;
constexpr uint32_t kUnitBytes = 3;
constexpr uint32_t kOrderByRank = 3;

// Perfetto's limit is 512 KB.
constexpr size_t kPackedTogetherBytes = size_t{256} << 10;

// Texts that are numbered from 1, and told to the reader as they come up.
class InternedNames {
 public:
  using List = google::protobuf::RepeatedPtrField<perfetto::InternedName>;

  explicit InternedNames(const std::vector<std::string>& names)
      : names_(names), is_known_(names.size(), false) {}

  // `list` of a packet's interned data gets the name if it is new.
  template <typename ListOf>
  uint64_t IdOf(size_t name, ListOf list) {
    if (!is_known_[name]) {
      is_known_[name] = true;
      perfetto::InternedName* const entry = list()->Add();
      entry->set_iid(name + 1);
      entry->set_name(names_[name]);
    }
    return name + 1;
  }

 private:
  const std::vector<std::string>& names_;
  std::vector<bool> is_known_;
};

// Packets, packed many together.
class PacketFile {
 public:
  explicit PacketFile(timeline::OutputFile* out) : out_(out) {}

  absl::Status Add(const perfetto::TracePacket& packet) {
    AppendPacket(packet, &pending_);
    return pending_.size() < kPackedTogetherBytes ? absl::OkStatus() : Flush();
  }

  absl::Status Flush() {
    if (pending_.empty()) return absl::OkStatus();
    uLongf size = compressBound(static_cast<uLong>(pending_.size()));
    std::string packed(size, '\0');
    if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                  reinterpret_cast<const Bytef*>(pending_.data()),
                  static_cast<uLong>(pending_.size()),
                  Z_DEFAULT_COMPRESSION) != Z_OK) {
      return absl::ResourceExhaustedError("no memory to pack the trace");
    }
    packed.resize(size);
    perfetto::TracePacket packet;
    packet.set_compressed_packets(std::move(packed));
    std::string bytes;
    AppendPacket(packet, &bytes);
    pending_.clear();
    return out_->Append(bytes);
  }

 private:
  // As an element of Trace.packet.
  static void AppendPacket(const perfetto::TracePacket& packet,
                           std::string* bytes) {
    constexpr char kPacketTag = 1 << 3 | 2;
    bytes->push_back(kPacketTag);
    for (size_t size = packet.ByteSizeLong(); true; size >>= 7) {
      if (size < 0x80) {
        bytes->push_back(static_cast<char>(size));
        break;
      }
      bytes->push_back(static_cast<char>((size & 0x7f) | 0x80));
    }
    packet.AppendToString(bytes);
  }

  timeline::OutputFile* const out_;
  std::string pending_;
};

// A packet to come: the begin or the end of a slice, an instant, a value.
struct Moment {
  int64_t time_ns;
  TrackEvent::Type type;
  uint64_t track;
  size_t event;  // its index among those of its kind
};

class Converter {
 public:
  Converter(const RawTrace& trace, PacketFile* out)
      : trace_(trace),
        out_(out),
        event_names_(trace.names),
        arg_names_(trace.names),
        arg_texts_(trace.names) {}

  absl::StatusOr<Conversion> Run() {
    conversion_.shift_ns = ShiftNs();
    HVDLITE_RETURN_IF_ERROR(AddClock());
    NumberFlows();
    HVDLITE_RETURN_IF_ERROR(AddLanes());
    HVDLITE_RETURN_IF_ERROR(AddCounters());
    // Of what happens at one time the order stays: an end before a begin, what
    // contains before what is contained.
    std::stable_sort(
        moments_.begin(), moments_.end(),
        [](const Moment& a, const Moment& b) { return a.time_ns < b.time_ns; });
    for (const Moment& moment : moments_) {
      HVDLITE_RETURN_IF_ERROR(AddMoment(moment));
    }
    HVDLITE_RETURN_IF_ERROR(out_->Flush());
    return conversion_;
  }

 private:
  int64_t ShiftNs() const {
    int64_t first_ns = 0;
    for (const RawSlice& slice : trace_.slices) {
      first_ns = std::min(first_ns, slice.start_ns);
    }
    for (const RawValue& value : trace_.values) {
      first_ns = std::min(first_ns, value.time_ns);
    }
    return -first_ns;
  }

  perfetto::TracePacket* NewPacket() {
    packet_.Clear();
    packet_.set_trusted_packet_sequence_id(kSequence);
    return &packet_;
  }

  absl::Status AddClock() {
    perfetto::TracePacket* const packet = NewPacket();
    packet->set_sequence_flags(kNamesBegin);
    packet->mutable_trace_packet_defaults()->set_timestamp_clock_id(
        kMonotonicClock);
    auto* const snapshot = packet->mutable_clock_snapshot();
    snapshot->set_primary_trace_clock(kMonotonicClock);
    for (const uint32_t clock : {kMonotonicClock, kBootClock}) {
      auto* const reading = snapshot->add_clocks();
      reading->set_clock_id(clock);
      reading->set_timestamp(0);
    }
    return out_->Add(*packet);
  }

  // An arrow leads from where one leaves a slice to where one of its id comes
  // in next. Each gets a number of its own.
  void NumberFlows() {
    using Ends = std::vector<std::pair<int64_t, size_t>>;  // time and slice
    absl::flat_hash_map<size_t, Ends> ends;                // by id
    for (const RawFlow& flow : trace_.flows) {
      if (!flow.is_in) continue;
      ends[flow.id].emplace_back(trace_.slices[flow.slice].start_ns,
                                 flow.slice);
    }
    for (auto& [id, slices] : ends) std::sort(slices.begin(), slices.end());
    uint64_t number = 0;
    for (const RawFlow& flow : trace_.flows) {
      const auto known = ends.find(flow.id);
      if (!flow.is_out || known == ends.end()) continue;
      const Ends& in = known->second;
      auto end = std::lower_bound(
          in.begin(), in.end(),
          std::pair(trace_.slices[flow.slice].start_ns, size_t{0}));
      if (end != in.end() && end->second == flow.slice) ++end;
      if (end == in.end()) continue;
      flows_out_[flow.slice].push_back(++number);
      flows_in_[end->second].push_back(number);
    }
    conversion_.flows = static_cast<int64_t>(number);
  }

  absl::Status AddTrack(uint64_t uuid, uint64_t parent, const std::string& name,
                        int64_t rank, bool is_counter, bool is_bytes) {
    perfetto::TracePacket* const packet = NewPacket();
    auto* const track = packet->mutable_track_descriptor();
    track->set_uuid(uuid);
    track->set_name(name);
    if (parent == 0) {
      track->set_child_ordering(kOrderByRank);
    } else {
      track->set_parent_uuid(parent);
    }
    track->set_sibling_order_rank(static_cast<int32_t>(
        std::clamp<int64_t>(rank, std::numeric_limits<int32_t>::min(),
                            std::numeric_limits<int32_t>::max())));
    if (is_counter) {
      auto* const counter = track->mutable_counter();
      if (is_bytes) counter->set_unit(kUnitBytes);
    }
    return out_->Add(*packet);
  }

  // The track of a process, which those of its lanes and counters are under.
  absl::StatusOr<uint64_t> ProcessTrack(int64_t pid) {
    const auto [track, added] = process_tracks_.try_emplace(pid, next_track_);
    if (added) {
      ++next_track_;
      HVDLITE_RETURN_IF_ERROR(AddTrack(
          track->second, 0, ProcessNameOf(trace_, pid), pid, false, false));
    }
    return track->second;
  }

  // Lanes that arrows come in at are last, so that those that they leave are
  // before them where the times are the same.
  absl::Status AddLanes() {
    std::vector<Track> tracks = TracksOf(trace_);
    std::stable_partition(
        tracks.begin(), tracks.end(), [this](const Track& track) {
          return std::none_of(track.moments.begin(), track.moments.end(),
                              [this](const TrackMoment& moment) {
                                return flows_in_.contains(moment.slice);
                              });
        });
    for (const Track& track : tracks) {
      HVDLITE_ASSIGN_OR_RETURN(const uint64_t parent, ProcessTrack(track.pid));
      const uint64_t uuid = next_track_++;
      HVDLITE_RETURN_IF_ERROR(AddTrack(uuid, parent,
                                       LaneNameOf(trace_, track.pid, track.tid),
                                       track.tid, false, false));
      for (const TrackMoment& moment : track.moments) {
        moments_.push_back(
            {moment.time_ns, TypeOf(moment.kind), uuid, moment.slice});
        if (moment.kind == TrackMoment::Kind::kBegin) ++conversion_.slices;
        if (moment.kind == TrackMoment::Kind::kInstant) ++conversion_.instants;
      }
    }
    return absl::OkStatus();
  }

  static TrackEvent::Type TypeOf(TrackMoment::Kind kind) {
    switch (kind) {
      case TrackMoment::Kind::kBegin:
        return TrackEvent::TYPE_SLICE_BEGIN;
      case TrackMoment::Kind::kEnd:
        return TrackEvent::TYPE_SLICE_END;
      case TrackMoment::Kind::kInstant:
        break;
    }
    return TrackEvent::TYPE_INSTANT;
  }

  absl::Status AddCounters() {
    constexpr int64_t kBelowLanes = 1'000'000;
    std::map<std::tuple<int64_t, size_t, size_t>, uint64_t> tracks;
    for (size_t i = 0; i < trace_.values.size(); ++i) {
      const RawValue& value = trace_.values[i];
      const auto [track, added] =
          tracks.try_emplace({value.pid, value.counter, value.key}, 0);
      if (added) {
        HVDLITE_ASSIGN_OR_RETURN(const uint64_t parent,
                                 ProcessTrack(value.pid));
        track->second = next_track_++;
        const std::string& key = trace_.names[value.key];
        HVDLITE_RETURN_IF_ERROR(
            AddTrack(track->second, parent,
                     absl::StrCat(trace_.names[value.counter], " ", key),
                     kBelowLanes, true, absl::EndsWith(key, "bytes")));
      }
      moments_.push_back(
          {value.time_ns, TrackEvent::TYPE_COUNTER, track->second, i});
      ++conversion_.counter_values;
    }
    return absl::OkStatus();
  }

  absl::Status AddMoment(const Moment& moment) {
    perfetto::TracePacket* const packet = NewPacket();
    packet->set_sequence_flags(kNeedsNames);
    packet->set_timestamp(static_cast<uint64_t>(moment.time_ns) +
                          static_cast<uint64_t>(conversion_.shift_ns));
    TrackEvent* const event = packet->mutable_track_event();
    event->set_type(moment.type);
    event->set_track_uuid(moment.track);
    if (moment.type == TrackEvent::TYPE_COUNTER) {
      std::visit(
          [event](auto value) {
            if constexpr (std::is_same_v<decltype(value), double>) {
              event->set_double_counter_value(value);
            } else {
              event->set_counter_value(value);
            }
          },
          trace_.values[moment.event].value);
    } else if (moment.type != TrackEvent::TYPE_SLICE_END) {
      FillSlice(moment.event, packet);
    }
    return out_->Add(*packet);
  }

  void FillSlice(size_t index, perfetto::TracePacket* packet) {
    TrackEvent* const event = packet->mutable_track_event();
    event->set_name_iid(event_names_.IdOf(trace_.slices[index].name, [packet] {
      return packet->mutable_interned_data()->mutable_event_names();
    }));
    for (const RawArg& arg : trace_.ArgsOf(trace_.slices[index])) {
      auto* const annotation = event->add_debug_annotations();
      annotation->set_name_iid(arg_names_.IdOf(arg.key, [packet] {
        return packet->mutable_interned_data()
            ->mutable_debug_annotation_names();
      }));
      if (const auto* text = std::get_if<RawText>(&arg.value)) {
        annotation->set_string_value_iid(arg_texts_.IdOf(text->name, [packet] {
          return packet->mutable_interned_data()
              ->mutable_debug_annotation_string_values();
        }));
      } else if (const auto* real = std::get_if<double>(&arg.value)) {
        annotation->set_double_value(*real);
      } else {
        annotation->set_int_value(std::get<int64_t>(arg.value));
      }
    }
    if (const auto out = flows_out_.find(index); out != flows_out_.end()) {
      for (const uint64_t flow : out->second) event->add_flow_ids(flow);
    }
    if (const auto in = flows_in_.find(index); in != flows_in_.end()) {
      for (const uint64_t flow : in->second) {
        event->add_terminating_flow_ids(flow);
      }
    }
  }

  const RawTrace& trace_;
  PacketFile* const out_;
  InternedNames event_names_;
  InternedNames arg_names_;
  InternedNames arg_texts_;
  Conversion conversion_;
  perfetto::TracePacket packet_;
  std::map<int64_t, uint64_t> process_tracks_;  // by pid
  uint64_t next_track_ = 1;
  // By slice: numbers of the arrows that leave it, and that come in.
  absl::flat_hash_map<size_t, std::vector<uint64_t>> flows_out_;
  absl::flat_hash_map<size_t, std::vector<uint64_t>> flows_in_;
  std::vector<Moment> moments_;
};

}  // namespace

absl::StatusOr<Conversion> ConvertToPerfetto(const RawTrace& trace,
                                             timeline::OutputFile* out) {
  PacketFile packets(out);
  return Converter(trace, &packets).Run();
}

}  // namespace hvdlite::timeline_viewer
