// What the answer to a stall probe tells of ranks, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/rank_list.h"

namespace hvdlite::negotiation {

// "2m30s": from a second on, to the tenth of a second.
std::string FormatAge(uint64_t age_ms);

// All that it refers to outlives this.
class AnswerText {
 public:
  // `hosts`: of all ranks. `pids`: likewise; empty: not known.
  AnswerText(const wire::Answer& answer, const std::vector<std::string>& hosts,
             const std::vector<int>& pids)
      : answer_(answer), hosts_(hosts), pids_(pids) {}

  // Of ranks that an operation waits for, "rank 3 (node2): last submitted 'x'
  // 12.0 s ago" each, and those that the answer does not describe together.
  std::vector<std::string> Missing(const RankRuns& missing) const;

  // The same of ranks that did not answer: why, as far as others see it.
  std::vector<std::string> Silent(const RankRuns& silent) const;

  // What ranks that answered say of themselves, a line each, and the stacks of
  // their threads, those that are the same once; each line begins with '\n'.
  // `submissions`: with what they submitted last.
  std::string Details(const RankRuns& ranks, bool submissions) const;

 private:
  // "rank 3 (node2)".
  std::string RankText(int rank) const;
  // Of a rank that does not answer, as another one of its host sees it.
  std::string LookText(int rank) const;
  std::string StacksOfAll() const;

  const wire::Answer& answer_;
  const std::vector<std::string>& hosts_;
  const std::vector<int>& pids_;
};

}  // namespace hvdlite::negotiation
