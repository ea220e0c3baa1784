// AnswerText turns the answer to a stall probe into text about ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/rank_list.h"

namespace hvdlite::negotiation {

// For example "2m30s": from one second on, to a tenth of a second.
std::string FormatAge(uint64_t age_ms);

// Everything that it refers to must outlive it.
class AnswerText {
 public:
  // `hosts` and `pids`: one entry per rank. Empty `pids`: not known.
  AnswerText(const wire::Answer& answer, const std::vector<std::string>& hosts,
             const std::vector<int>& pids)
      : answer_(answer), hosts_(hosts), pids_(pids) {}

  // Texts about ranks that an operation waits for, such as "rank 3 (node2):
  // last submitted 'x' 12.0 s ago". Ranks that the answer does not describe
  // share one text.
  std::vector<std::string> Missing(const RankRuns& missing) const;

  // The same for ranks that did not answer, with the reason as far as other
  // ranks see it.
  std::vector<std::string> Silent(const RankRuns& silent) const;

  // What ranks that answered report about themselves, one line each, and the
  // stacks of their threads, equal ones once. Each line begins with '\n'.
  // `submissions`: includes what they submitted last.
  std::string Details(const RankRuns& ranks, bool submissions) const;

 private:
  // For example "rank 3 (node2)".
  std::string RankText(int rank) const;
  // The state of a rank that does not answer, as seen by another rank of its
  // host.
  std::string LookText(int rank) const;
  std::string StacksOfAll() const;

  const wire::Answer& answer_;
  const std::vector<std::string>& hosts_;
  const std::vector<int>& pids_;
};

}  // namespace hvdlite::negotiation
