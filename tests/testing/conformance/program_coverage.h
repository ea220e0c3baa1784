// What random programs contain. It detects a generator that no longer makes
// some kind of operation, so that no other test has to try them all one by one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/testing/conformance/program.h"

namespace hvdlite::testing {

class ProgramCoverage {
 public:
  void Add(const Program& program) {
    sizes_.insert(program.size);
    for (const ProgramSegment& segment : program.segments) {
      for (const ProgramStep& step : segment.steps) Add(step, program.size);
    }
  }

  // Descriptions of what programs should contain and none does.
  std::vector<std::string> Missing() const {
    std::vector<std::string> missing;
    for (const std::string& one : Wanted()) {
      if (!had_.contains(one)) missing.push_back(one);
    }
    return missing;
  }

 private:
  using Fault = ProgramStep::Fault;

  static std::string With(Collective collective, absl::string_view what) {
    return absl::StrCat(NameOf(collective), " with ", what);
  }
  static std::string Of(Collective collective, DataType dtype,
                        absl::string_view what) {
    return absl::StrCat(NameOf(collective), " of ", NameOf(dtype), ": ", what);
  }
  static std::string From(int root, int size) {
    return absl::StrCat("broadcast from rank ", root, " of ", size);
  }
  static const char* NameOfFault(Fault fault) {
    constexpr const char* kNames[] = {"no fault", "a mismatch", "a refusal",
                                      "doom",     "late ranks", "a joined one"};
    return kNames[static_cast<int>(fault)];
  }

  void Add(const ProgramStep& step, int size) {
    const OperationCase& operation = step.operation;
    const Request& request = operation.request;
    const Collective collective = request.collective;
    for (const TensorSpec& tensor : request.tensors) {
      if (step.fault != Fault::kNone) break;
      const absl::string_view op =
          request.average ? "average" : NameOf(request.op);
      had_.insert(Of(collective, tensor.dtype, op));
      had_.insert(Of(collective, tensor.dtype, NameOf(request.compression)));
    }
    had_.insert(With(collective, NameOfFault(step.fault)));
    had_.insert(NameOfFault(step.fault));
    if (!operation.absent.empty() && operation.members.size() > 1) {
      const bool all = operation.absent.size() == operation.members.size();
      had_.insert(With(collective, all ? "all absent" : "some absent"));
    }
    if (!operation.joined.empty() && step.fault == Fault::kNone) {
      if (operation.joined.size() < operation.members.size()) {
        had_.insert(With(collective, "some joined"));
      }
    }
    if (collective == Collective::kBroadcast) {
      had_.insert(From(request.root_rank, size));
    }
  }

  std::vector<std::string> Wanted() const {
    std::vector<std::string> wanted;
    for (const DataType dtype : AllDataTypes()) AddOfType(dtype, wanted);
    for (const Collective collective :
         {Collective::kAllreduce, Collective::kReducescatter,
          Collective::kAdasum, Collective::kBroadcast, Collective::kAllgather,
          Collective::kAlltoall}) {
      wanted.push_back(With(collective, NameOfFault(Fault::kMismatch)));
      wanted.push_back(With(collective, NameOfFault(Fault::kRefusal)));
    }
    wanted.push_back(With(Collective::kBarrier, NameOfFault(Fault::kRefusal)));
    wanted.push_back(NameOfFault(Fault::kDoomed));
    wanted.push_back(NameOfFault(Fault::kLate));
    for (const Collective collective :
         {Collective::kReducescatter, Collective::kBroadcast,
          Collective::kAlltoall}) {
      wanted.push_back(With(collective, NameOfFault(Fault::kJoined)));
    }
    for (const Collective collective :
         {Collective::kAllreduce, Collective::kAdasum}) {
      wanted.push_back(With(collective, "some absent"));
      wanted.push_back(With(collective, "all absent"));
    }
    for (const Collective collective :
         {Collective::kAllreduce, Collective::kAdasum, Collective::kBroadcast,
          Collective::kAllgather, Collective::kBarrier}) {
      wanted.push_back(With(collective, "some joined"));
    }
    for (const int size : sizes_) {
      for (int root = 0; root < size; ++root) {
        wanted.push_back(From(root, size));
      }
    }
    return wanted;
  }

  static void AddOfType(DataType dtype, std::vector<std::string>& wanted) {
    for (const Collective collective :
         {Collective::kBroadcast, Collective::kAllgather,
          Collective::kAlltoall}) {
      wanted.push_back(Of(collective, dtype, NameOf(ReduceOp::kSum)));
    }
    for (const Collective collective :
         {Collective::kAllreduce, Collective::kReducescatter,
          Collective::kAdasum}) {
      const bool adasum = collective == Collective::kAdasum;
      if (adasum && (!Rounds(dtype) || PartOf(dtype) != dtype)) continue;
      for (const ReduceOp op : ReduceOpsOf(dtype)) {
        if (adasum && op != ReduceOp::kSum) continue;
        wanted.push_back(Of(collective, dtype, NameOf(op)));
      }
      if (!adasum) wanted.push_back(Of(collective, dtype, "average"));
      for (int kind = 0; kind < collective::kNumCompressions; ++kind) {
        wanted.push_back(
            Of(collective, dtype,
               NameOf(static_cast<collective::Compression>(kind))));
      }
    }
  }

  std::set<std::string> had_;
  std::set<int> sizes_;
};

}  // namespace hvdlite::testing
