// Messages between negotiators that no rank of this version would send.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/fuzz/fuzz_input.h"

namespace hvdlite::fuzz {

namespace wire = negotiation::wire;
using negotiation::NumberField;

inline std::string AnyName(FuzzInput& input) {
  const int choice = input.Below(20);
  if (choice < 16) return absl::StrCat("t", choice % 6);
  if (choice == 16) return std::string(negotiation::kJoinName);
  if (choice == 17) return std::string(negotiation::kShutdownName);
  return std::string(input.Bytes(choice == 18 ? 3 : 300));
}

inline void FillRequest(FuzzInput& input, wire::Request* request) {
  request->set_name(AnyName(input));
  request->set_process_set(input.Bool() ? 0 : input.Number());
  request->set_collective(input.Below(12));
  for (int left = input.Below(3); left > 0; --left) {
    wire::Tensor* const tensor = request->add_tensors();
    tensor->set_dtype(input.Number());
    for (int dimensions = input.Below(5); dimensions > 0; --dimensions) {
      tensor->add_shape(static_cast<int64_t>(input.Number()));
    }
    if (input.Bool()) tensor->add_strides(static_cast<int64_t>(input.Number()));
  }
  request->set_op(input.Below(6));
  request->set_average(input.Bool());
  request->set_compression(input.Below(4));
  request->set_prescale_factor(static_cast<double>(input.Number()));
  request->set_root_rank(static_cast<int32_t>(input.Number()));
  for (int left = input.Below(4); left > 0; --left) {
    request->add_members(static_cast<int32_t>(input.Number()));
  }
  request->set_removed(input.Number());
  if (input.Below(5) == 0) request->set_local_error("no memory");
}

inline void FillNumbers(FuzzInput& input, NumberField* field) {
  for (int left = input.Below(6); left > 0; --left) field->Add(input.Number());
}

inline void FillRanks(FuzzInput& input, wire::Ranks* ranks) {
  for (int left = input.Below(6); left > 0; --left) {
    ranks->add_runs(static_cast<uint32_t>(input.Number()));
  }
  ranks->set_unnamed(static_cast<uint32_t>(input.Number()));
}

inline void FillReady(FuzzInput& input, wire::Ready* ready) {
  FillNumbers(input, ready->mutable_ids());
  FillNumbers(input, ready->mutable_last_ranks());
  FillNumbers(input, ready->mutable_ages());
  if (input.Bool()) FillNumbers(input, ready->mutable_steps());
}

inline void FillReport(FuzzInput& input, wire::Report* report) {
  if (input.Bool()) FillReady(input, report->mutable_ready());
  if (input.Below(4) == 0) FillReady(input, report->mutable_absent());
  for (int left = input.Below(4); left > 0; --left) {
    wire::Announcement* const announced = report->add_announced();
    FillRequest(input, announced->mutable_request());
    if (input.Bool()) FillRanks(input, announced->mutable_ranks());
    announced->set_absent(input.Bool());
    announced->set_last_rank(static_cast<int32_t>(input.Number()));
    announced->set_age(static_cast<uint32_t>(input.Number()));
    announced->set_step(static_cast<uint32_t>(input.Number()));
  }
  if (input.Below(4) == 0) FillNumbers(input, report->mutable_urgent_ids());
  if (input.Below(4) == 0) report->add_urgent_names(AnyName(input));
  if (input.Below(8) == 0) {
    report->mutable_departure()->set_rank(static_cast<int32_t>(input.Number()));
    report->mutable_departure()->set_reason(AnyName(input));
  }
  report->set_all_left(input.Below(8) == 0);
  for (int left = input.Below(8) - 5; left > 0; --left) {
    wire::Stall* const stall = report->add_stalls();
    stall->set_name(AnyName(input));
    stall->set_waiting_ms(input.Number());
    stall->set_fatal(input.Below(8) == 0);
    stall->set_process_set(static_cast<uint32_t>(input.Number()));
  }
  if (input.Below(4) == 0) {
    wire::Answer* const answer = report->mutable_answer();
    answer->set_probe(input.Number());
    for (int left = input.Below(3); left > 0; --left) {
      wire::StallAnswer* const stall = answer->add_stalls();
      FillRanks(input, stall->mutable_missing());
      FillRanks(input, stall->mutable_silent());
      stall->set_pending(input.Bool());
      wire::RankState* const state = answer->add_states();
      state->set_rank(static_cast<int32_t>(input.Number()));
      state->set_last_name(AnyName(input));
      state->set_since_ms(input.Number());
      answer->add_silent(static_cast<uint32_t>(input.Number()));
    }
    answer->set_overdue(static_cast<uint32_t>(input.Number()));
  }
  switch (input.Below(16)) {
    case 0:
      report->set_broken(AnyName(input));
      break;
    case 14:
      report->set_forgotten(input.Number());
      break;
    case 15:
      FillNumbers(input, report->mutable_released_ids());
      break;
    default:
      break;
  }
  for (int left = input.Below(8) - 5; left > 0; --left) {
    report->add_joined(static_cast<int32_t>(input.Number()));
  }
  report->set_waits_after(input.Number());
}

inline void FillRegistration(FuzzInput& input,
                             wire::Registration* registration) {
  registration->set_id(static_cast<uint32_t>(input.Number()));
  FillRequest(input, registration->mutable_request());
}

inline void FillDecision(FuzzInput& input, uint64_t number,
                         wire::Decision* decision) {
  decision->set_number(input.Below(8) == 0 ? input.Number() : number);
  switch (input.Below(12)) {
    case 0:
      decision->mutable_failure()->set_name(AnyName(input));
      decision->mutable_failure()->set_message(AnyName(input));
      decision->mutable_failure()->set_next_step(
          static_cast<uint32_t>(input.Number()));
      break;
    case 1:
      decision->mutable_departure()->set_rank(
          static_cast<int32_t>(input.Number()));
      break;
    case 2:
      decision->set_broken(AnyName(input));
      break;
    case 3:
      if (input.Bool()) {
        decision->set_shutdown(true);
      } else {
        FillNumbers(input, decision->mutable_forgotten()->mutable_ids());
      }
      break;
    case 4:
    case 5:
      decision->mutable_added()->set_name(AnyName(input));
      decision->mutable_added()->set_process_set(
          static_cast<uint32_t>(input.Number()));
      for (int left = input.Below(4); left > 0; --left) {
        decision->mutable_added()->add_members(
            static_cast<int32_t>(input.Number()));
      }
      break;
    case 6:
      decision->mutable_removed()->set_name(AnyName(input));
      decision->mutable_removed()->set_process_set(
          static_cast<uint32_t>(input.Number()));
      break;
    case 7:
      decision->set_all_joined(static_cast<int32_t>(input.Number()));
      break;
    default: {
      wire::Bucket* const bucket = decision->mutable_bucket();
      if (input.Bool()) FillNumbers(input, bucket->mutable_ids());
      for (int left = input.Below(3); left > 0; --left) {
        FillRegistration(input, bucket->add_registered());
      }
      for (int left = input.Below(3); left > 0; --left) {
        bucket->add_names(AnyName(input));
      }
      if (input.Bool()) FillNumbers(input, bucket->mutable_absent_ids());
      if (input.Bool()) bucket->add_absent_names(AnyName(input));
      FillNumbers(input, bucket->mutable_last_ranks());
      FillNumbers(input, bucket->mutable_lateness_us());
      const int more = input.Below(4);
      if (more == 0) FillRegistration(input, bucket->add_absent_registered());
      if (more == 3) FillRequest(input, bucket->add_requests());
      bucket->set_process_set(
          input.Bool() ? 0 : static_cast<uint32_t>(input.Number()));
      bucket->set_joined(static_cast<uint32_t>(input.Number()));
      break;
    }
  }
}

inline void FillMessage(FuzzInput& input, uint64_t next_decision,
                        wire::Message* message) {
  if (input.Bool()) {
    FillReport(input, message->mutable_report());
  } else {
    wire::Directive* const directive = message->mutable_directive();
    for (int left = input.Below(3); left > 0; --left) {
      FillDecision(input, next_decision++, directive->add_decisions());
    }
    if (input.Below(4) == 0) {
      directive->mutable_probe()->set_number(input.Number());
      for (int left = input.Below(4); left > 0; --left) {
        directive->mutable_probe()->add_names(AnyName(input));
        if (input.Bool()) {
          directive->mutable_probe()->add_process_sets(
              static_cast<uint32_t>(input.Number()));
        }
      }
    }
    directive->set_awaits_reports(input.Bool());
  }
  message->set_ping(input.Bool());
  message->set_pong(input.Bool());
  if (input.Below(4) == 0) FillNumbers(input, message->mutable_gates());
}

}  // namespace hvdlite::fuzz
