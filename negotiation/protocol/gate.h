// Gates: where the members of a process set meet before they do what blocks.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// What a member adds to a gate; whoever passes it knows what all have added.
enum GateFlags : uint32_t {
  kGateError = 1,  // it cannot take part: nobody is to begin
};
inline constexpr int kGateFlagBits = 4;

// A call of the data plane blocks, and may spin, until all members are in it.
// So each decision that leads to one has a gate: no member begins before all
// have come to it, nobody spins for a straggler, and whoever waits still serves
// its messages.
//
// The rule, along the edges of the tree: a rank tells a neighbour "all members
// on my side are here" once it is there itself (if it is a member) and all its
// other neighbours with members behind them have told it so. A member passes
// when all its neighbours have. So two small messages cross each edge between
// members, one in each direction, and the news of the last arrival takes the
// shortest way to everybody. Ranks between members that are not members
// themselves relay.
//
// A leaf of the tree that does nothing but wait for a result says so beside
// what it reports (OnReport): its parent then counts it as here when the next
// decision that concerns it is a reduction or a barrier, and says that it did.
// What is left of the gate is one message, which goes along with the decision.
// Where there is but one node, a leaf that has nothing left to do says the
// same: whoever waits for it in shared memory still hears of the world's end.
//
// Why nobody waits for ever: of the gates that are not done with take the one
// of the lowest number. Its members have done all that comes before it. A relay
// stays out of calls of later decisions until it has relayed (MayBlock), and
// nobody begins to block before what it has told of gates so far is with its
// neighbours. So every rank on the way serves its messages, or is in the call
// of an earlier decision, which all its members have come to or will: it ends.
// (To relay only what is half done first would not be enough: inside a call, a
// relay may wait for a member of it that waits for the relay at an earlier
// gate. To have everything delivered first would be too much: who is in the
// call already takes nothing that was sent after the news that let it in.)
//
// One rank's part in all gates that concern it. Pure: no I/O, threads or clock.
class Gates {
 public:
  // The references outlive this.
  Gates(int rank, const TreePosition& tree, const Membership& membership);

  // Decision `number`, larger than any before, has a gate for the members that
  // the process set has now. `counts_on_waiting`: leaves that wait are here.
  void Open(uint64_t number, ProcessSetId process_set, bool counts_on_waiting);

  // This rank, a member, has come to the gate, with flags of its own. False if
  // it has been counted as here without any: the others may have begun.
  bool Arrive(uint64_t number, uint32_t flags);

  // A neighbour has reported something. `waits_after`: it is a leaf, waits, and
  // has executed all decisions up to this number that concern it; it will
  // come to the gate of a batch at once, with no flags. None: it says nothing
  // of the kind, and what it said before does not hold any more.
  void OnReport(int from, std::optional<uint64_t> waits_after);

  // What a neighbour told of a gate. Errors: Internal for what breaks the
  // protocol.
  absl::Status OnMessage(int from, uint64_t gate);

  // Whether the sender says that it has counted this rank as here: it does not
  // wait for what this rank has told it of that gate, if anything.
  static bool HasCounted(uint64_t gate);

  // The flags of all members once all are there; nullopt before.
  std::optional<uint32_t> Passed(uint64_t number) const;

  // Whether this rank may block in decision `number`: it has nothing left to
  // relay for an earlier gate.
  bool MayBlock(uint64_t number) const;

  // This rank has passed the gate and will not ask for it again.
  void Close(uint64_t number);

  // Whether all that this rank knows of are here, so that they may be in the
  // decision's call: this rank has passed, or will as soon as it arrives.
  bool OthersMayBegin(uint64_t number) const;

  // The world is aborted: nothing is awaited or told any more. Where others
  // may begin, this rank still does.
  void Abandon();

  // Appends what is to be told to the neighbour, and forgets it.
  void TakeOutgoing(int to, google::protobuf::RepeatedField<uint64_t>& gates);

  // The neighbours that have not told that all behind them are at the gate.
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
    uint64_t counted = 0;  // heard, in that they wait
    uint32_t flags = 0;    // its own, and all that it has heard
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
  // Tells whom there is something to tell; forgets a gate that needs nothing
  // more of a rank that is not a member.
  void Proceed(Gate& gate);

  const int rank_;
  const TreePosition& tree_;
  const Membership& membership_;
  std::vector<Gate> gates_;  // by number, ascending
  uint64_t last_opened_ = 0;
  // Of each edge: the last gate that concerned it, and how far it says to wait.
  std::vector<uint64_t> last_gate_;
  std::vector<std::optional<uint64_t>> waits_after_;
  std::vector<Outgoing> outgoing_;
  bool abandoned_ = false;
};

}  // namespace hvdlite::negotiation
