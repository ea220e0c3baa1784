#include "collective/shm/shm_communicator.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collective/call_arguments.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "collective/fusion/rounds.h"
#include "collective/shm/node_reducer.h"
#include "collective/shm/shared_memory.h"
#include "collective/shm/zero_copy.h"

namespace hvdlite::collective {
namespace {

// The ranks of one communicator, by node.
struct Nodes {
  std::vector<int> node_of_rank;          // counted from 0
  std::vector<std::vector<int>> members;  // of each node, ascending

  const std::vector<int>& members_with(int rank) const {
    return members[static_cast<size_t>(
        node_of_rank[static_cast<size_t>(rank)])];
  }

  NodeSizes sizes() const {
    size_t smallest = members.front().size();
    for (const std::vector<int>& node : members) {
      smallest = std::min(smallest, node.size());
    }
    return {.num_nodes = static_cast<int>(members.size()),
            .num_ranks = static_cast<int>(node_of_rank.size()),
            .num_slices = static_cast<int>(smallest)};
  }
};

// Nodes are numbered in the order of their lowest ranks.
Nodes SortByNode(absl::Span<const int> node_of_rank) {
  Nodes nodes;
  std::map<int, int> index_of;
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const auto [index, inserted] = index_of.try_emplace(
        node_of_rank[rank], static_cast<int>(index_of.size()));
    if (inserted) nodes.members.emplace_back();
    nodes.node_of_rank.push_back(index->second);
    nodes.members[static_cast<size_t>(index->second)].push_back(
        static_cast<int>(rank));
  }
  return nodes;
}

// CreateShmCommunicator() with the registry of memory for tensors.
absl::StatusOr<std::unique_ptr<Communicator>> Create(
    std::unique_ptr<Communicator>& flat, absl::Span<const int> node_of_rank,
    const AllreduceTable& table, const ShmOptions& options,
    std::shared_ptr<TensorMemoryRegistry> registry);

class ShmCommunicator final : public Communicator {
 public:
  ShmCommunicator(std::unique_ptr<Communicator> flat, Nodes nodes,
                  const AllreduceTable& table, const ShmOptions& options,
                  std::unique_ptr<NodeMemory> board,
                  std::unique_ptr<Communicator> across,
                  std::shared_ptr<TensorMemoryRegistry> registry)
      : table_(table),
        options_(options),
        nodes_(std::move(nodes)),
        sizes_(nodes_.sizes()),
        hooks_({.while_waiting =
                    [this] {
                      MakeProgress();
                      return absl::OkStatus();
                    }}),
        flat_(std::move(flat)),
        across_(std::move(across)),
        board_(std::move(board)),
        registry_(std::move(registry)),
        reducer_(*board_, sizes_, across_.get(), registry_) {}

  int rank() const override { return flat_->rank(); }
  int size() const override { return flat_->size(); }
  absl::string_view name() const override { return flat_->name(); }

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp op) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(
        CheckReductionArguments("Allreduce", buffer, dtype, op));
    const FusedTensor tensor = {buffer, buffer};
    PhaseTimer timer(clock_, hooks_);
    return AllreduceTensors(/*buffer=*/{}, {.dtype = dtype, .op = op},
                            absl::MakeConstSpan(&tensor, 1), timer);
  }

  // Ignores `buffer`: it has its own buffer for the flat communicator.
  absl::Status AllreduceTensors(absl::Span<std::byte> /*buffer*/,
                                const Reduction& reduction,
                                absl::Span<const FusedTensor> tensors,
                                PhaseTimer& timer) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    size_t bytes = 0;
    for (const FusedTensor& tensor : tensors) bytes += tensor.output.size();
    if (bytes == 0) return absl::OkStatus();
    // The choice depends on the number of ranks that send at once. Some node
    // shares memory even if another node has only one rank.
    const AllreduceChoice choice =
        table_.Choose(sizes_.num_nodes, std::max(2, sizes_.num_slices), bytes);
    if (choice.algorithm != AllreduceAlgorithm::kFlat) {
      if (!wants_rings_) HVDLITE_RETURN_IF_ERROR(Latch(ReserveRings()));
      if (reducer_.has_rings()) {
        return Latch(reducer_.Reduce(choice, reduction, tensors, timer));
      }
    }
    timer.AlgorithmChosen(NameOf(AllreduceAlgorithm::kFlat));
    if (buffer_ == nullptr) {
      buffer_ = std::make_unique<FusionBuffer>(AllreduceTable::kMaxChunkBytes);
    }
    return Latch(
        flat_->AllreduceTensors(buffer_->bytes(), reduction, tensors, timer));
  }

  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    return flat_->Broadcast(buffer, root);
  }
  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    return flat_->Allgather(buffer, bytes_of_rank);
  }
  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             DataType dtype, ReduceOp op) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    return flat_->ReduceScatter(buffer, bytes_of_rank, dtype, op);
  }
  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    return flat_->Alltoall(input, input_bytes, output, output_bytes);
  }
  absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                        absl::Span<std::byte> receive) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    return flat_->Exchange(peer, send, receive);
  }

  absl::Status Barrier() override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    return flat_->Barrier();
  }

  bool shares_memory() const override { return true; }
  bool uses_memory() const override {
    return flat_->uses_memory() ||
           (across_ != nullptr && across_->uses_memory());
  }

  absl::StatusOr<TensorMemory> AllocateTensors(size_t bytes) override {
    return registry_->Allocate(bytes);
  }

  void SetSpin(absl::Duration spin) override {
    reducer_.SetSpin(spin);
    flat_->SetSpin(spin);
    if (across_ != nullptr) across_->SetSpin(spin);
  }
  // The calls of the subgroup `across_` count, too.
  void MakeProgress() override { flat_->MakeProgress(); }
  bool TakeCalls() override { return flat_->TakeCalls(); }

  absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> flat,
                             flat_->CreateSubgroup(members, tag));
    std::vector<int> node_of_member;
    for (const int member : members) {
      node_of_member.push_back(
          nodes_.node_of_rank[static_cast<size_t>(member)]);
    }
    auto subgroup = Create(flat, node_of_member, table_, options_, registry_);
    if (subgroup.ok()) return subgroup;
    return flat;
  }

 private:
  // Collective: tries to reserve the rings, with the same result on all ranks.
  absl::Status ReserveRings() {
    wants_rings_ = true;
    auto rings =
        NodeMemory::Create(*flat_, nodes_.members_with(rank()),
                           NodeReducer::kRingBytes, options_.file_system_root);
    if (rings.ok()) {
      reducer_.SetRings(*std::move(rings));
    } else if (rank() == 0 && options_.warn) {
      options_.warn(absl::StrCat(
          "the ranks of a node cannot share memory for buckets; from now on ",
          name(), " reduces everything among these ", size(),
          " ranks: ", rings.status().message()));
    }
    return absl::OkStatus();  // `flat_` reports a broken transport
  }

  absl::Status Latch(absl::Status status) {
    if (!status.ok()) broken_ = status;
    return status;
  }

  const AllreduceTable table_;
  const ShmOptions options_;
  const Nodes nodes_;
  const NodeSizes sizes_;
  const base::SteadyClock clock_;
  const FusionHooks hooks_;
  // Destructors are collective: the same order on all ranks.
  const std::unique_ptr<Communicator> flat_;
  const std::unique_ptr<Communicator> across_;
  const std::unique_ptr<NodeMemory> board_;
  const std::shared_ptr<TensorMemoryRegistry> registry_;
  NodeReducer reducer_;
  bool wants_rings_ = false;  // a bucket has needed the rings
  std::unique_ptr<FusionBuffer> buffer_;
  absl::Status broken_;
};

absl::StatusOr<std::unique_ptr<Communicator>> Create(
    std::unique_ptr<Communicator>& flat, absl::Span<const int> node_of_rank,
    const AllreduceTable& table, const ShmOptions& options,
    std::shared_ptr<TensorMemoryRegistry> registry) {
  Nodes nodes = SortByNode(node_of_rank);
  const NodeSizes sizes = nodes.sizes();
  if (sizes.num_nodes == sizes.num_ranks) {
    return absl::FailedPreconditionError("no two ranks share a node");
  }

  HVDLITE_ASSIGN_OR_RETURN(
      std::unique_ptr<NodeMemory> board,
      NodeMemory::Create(*flat, nodes.members_with(flat->rank()),
                         NodeReducer::kBoardBytes, options.file_system_root));
  std::unique_ptr<Communicator> across;
  if (sizes.num_nodes > 1) {
    absl::Status created;
    if (board->rank() < sizes.num_slices) {
      // Members are in the order of nodes for every slice: sums use this order.
      std::vector<int> members;
      for (const std::vector<int>& others : nodes.members) {
        members.push_back(others[static_cast<size_t>(board->rank())]);
      }
      auto group = flat->CreateSubgroup(members, /*tag=*/board->rank());
      created = group.status();
      if (created.ok()) across = *std::move(group);
    }
    HVDLITE_RETURN_IF_ERROR(AgreeOn(*flat, created));
  }
  return std::make_unique<ShmCommunicator>(
      std::move(flat), std::move(nodes), table, options, std::move(board),
      std::move(across), std::move(registry));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateShmCommunicator(
    std::unique_ptr<Communicator>& flat, absl::Span<const int> node_of_rank,
    const AllreduceTable& table, const ShmOptions& options) {
  return Create(flat, node_of_rank, table, options,
                std::make_shared<TensorMemoryRegistry>());
}

}  // namespace hvdlite::collective
