// Gates is where the members of a process set meet before a blocking call.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// What a member adds to a gate. Each member that passes gets the flags of all.
enum GateFlags : uint32_t {
  kGateError = 1,  // it cannot take part: no rank may begin
};
inline constexpr int kGateFlagBits = 4;

// A call of the data plane blocks, and may spin, until all members are in it.
// So each decision that leads to such a call has a gate, an asynchronous tree
// barrier. No member begins before all have entered the gate. No rank spins
// while it waits for a straggler, and waiting ranks still handle messages.
//
// The rule works along the edges of the tree. A rank sends "all members on my
// side are here" to a neighbour under two conditions. It is there itself, if it
// is a member. And all its other neighbours with members behind them have sent
// the same. A member passes when all its neighbours have sent it. So two small
// messages cross each edge between members, one in each direction. The news of
// the last arrival takes the shortest way to all ranks. Ranks between members
// that are not members relay.
//
// A leaf of the tree that only waits for a result adds this to its report
// (OnReport). Its parent then counts it as arrived if the next decision that
// concerns it is a reduction or a barrier, and informs it. The gate then needs
// only one message, which is sent along with the decision. If there is only one
// node, a leaf that has nothing left to do reports the same. There, a rank that
// waits for it in shared memory still learns of the world's end.
//
// Why there is no deadlock: among the open gates, take the one with the lowest
// number. Its members have finished everything before it. A relay does not
// enter calls of later decisions until it has relayed (MayBlock). No rank
// begins to block before its neighbours have received all that it has sent
// about gates so far. So every rank on the way handles its messages, or is in
// the call of an earlier decision. All members of that decision have arrived,
// or will: the call ends.
//
// Two other rules do not work. A relay could stay out only for gates that it
// has received news about. But inside a call, it may then wait for a member
// that waits for the relay at an earlier gate. Or everything could be delivered
// before a rank blocks. But a rank that is in the call already does not receive
// what was sent after the news that let it in.
//
// One rank's part in all gates that concern it. There is no I/O, thread or
// clock.
class Gates {
 public:
  // References must outlive this.
  Gates(int rank, const TreePosition& tree, const Membership& membership);

  // Decision `number`, larger than all before, has a gate for the current
  // members of the process set. `counts_on_waiting`: waiting leaves count as
  // arrived.
  void Open(uint64_t number, ProcessSetId process_set, bool counts_on_waiting);

  // This rank, a member, has entered the gate with these flags. False if it was
  // already counted as arrived without flags: other ranks may have begun.
  bool Arrive(uint64_t number, uint32_t flags);

  // A neighbour has sent a report. `waits_after`: the neighbour is a leaf,
  // waits, and has executed all decisions up to this number that concern it. It
  // will enter the gate of a bucket immediately, with no flags. Nullopt: it
  // does not wait, and an earlier statement is no longer valid.
  void OnReport(int from, std::optional<uint64_t> waits_after);

  // A neighbour's message about a gate. Errors: Internal for a violation of the
  // protocol.
  absl::Status OnMessage(int from, uint64_t gate);

  // Whether the sender has counted this rank as arrived: then it does not wait
  // for this rank's message about that gate, if there is one.
  static bool HasCounted(uint64_t gate);

  // The flags of all members once all have arrived; nullopt before.
  std::optional<uint32_t> Passed(uint64_t number) const;

  // Whether this rank may block in decision `number`: it has nothing left to
  // relay for an earlier gate.
  bool MayBlock(uint64_t number) const;

  // This rank has passed the gate and will not ask for it again.
  void Close(uint64_t number);

  // Whether all members have arrived as far as this rank knows, so that they
  // may be in the decision's call. This rank has passed, or will pass when it
  // arrives.
  bool OthersMayBegin(uint64_t number) const;

  // The world is aborted: nothing is awaited or sent any more. If other ranks
  // may have begun, this rank still begins.
  void Abandon();

  // Appends the messages for the neighbour, and forgets them.
  void TakeOutgoing(int to, google::protobuf::RepeatedField<uint64_t>& gates);

  // The neighbours that have not reported that all members behind them have
  // arrived.
  std::vector<int> Missing(uint64_t number) const;

 private:
  // Edges of the tree are bits: 0 for the parent, 1, 2, ... for the children.
  struct Gate {
    uint64_t number = 0;
    bool member = false;
    bool arrived = false;  // this rank, if it is a member
    uint64_t edges = 0;    // with members behind them
    uint64_t heard = 0;    // from these edges
    uint64_t told = 0;     // to these edges
    uint64_t counted = 0;  // heard, because they wait
    uint32_t flags = 0;    // its own, and all received
  };
  struct Outgoing {
    int edge = 0;
    uint64_t gate = 0;
  };

  static bool OthersMayBegin(const Gate& gate);
  int EdgeOf(int rank) const;  // -1: not a neighbour
  int RankAt(int edge) const;
  Gate* Find(uint64_t number);
  const Gate* Find(uint64_t number) const;
  // Sends the messages that are due. Forgets a gate that needs nothing more
  // from a rank that is not a member.
  void Proceed(Gate& gate);

  const int rank_;
  const TreePosition& tree_;
  const Membership& membership_;
  std::vector<Gate> gates_;  // by number, ascending
  uint64_t last_opened_ = 0;
  // For each edge: the last gate that concerned it, and the number after which
  // it waits.
  std::vector<uint64_t> last_gate_;
  std::vector<std::optional<uint64_t>> waits_after_;
  std::vector<Outgoing> outgoing_;
  bool abandoned_ = false;
};

}  // namespace hvdlite::negotiation
