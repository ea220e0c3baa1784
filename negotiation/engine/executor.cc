#include "negotiation/engine/executor.h"

#include <exception>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvdlite::negotiation {
namespace {

// The number of tags for MPI's messages while a process set is made. Ids that
// share a tag are never made at the same time.
constexpr ProcessSetId kTags = 32768;

// Sets `text` to "allreduce of 'x' and 3 others".
void Describe(const Bucket& bucket, std::string& text) {
  const Request& first = bucket.front()->operation.request;
  text.clear();
  absl::StrAppend(&text, NameOf(first.collective));
  absl::AsciiStrToLower(&text);
  absl::StrAppend(&text, " of '", first.name, "'");
  if (bucket.size() > 1) {
    absl::StrAppend(&text, " and ", bucket.size() - 1, " others");
  }
}

}  // namespace

Executor::Executor(const Config& config,
                   const CoordinatorEnvironment& environment,
                   Watchdog& watchdog, OperationTable& operations,
                   std::function<absl::Status()> serve)
    : config_(config),
      world_(environment.communicator),
      clock_(environment.clock),
      watchdog_(watchdog),
      operations_(operations),
      serve_(std::move(serve)),
      buffer_(config.chunk_bytes) {
  sets_[0] = {&world_, {}, nullptr};
}

Token Executor::Add(SubmittedPtr pending) {
  if (free_tokens_.empty()) {
    by_token_.push_back(std::move(pending));
    return by_token_.size() - 1;
  }
  const Token token = free_tokens_.back();
  free_tokens_.pop_back();
  by_token_[token] = std::move(pending);
  return token;
}

SubmittedPtr Executor::Take(Token token) {
  if (token >= by_token_.size() || by_token_[token] == nullptr) return nullptr;
  free_tokens_.push_back(token);
  return std::move(by_token_[token]);
}

Bucket Executor::TakeAll(absl::Span<const Token> tokens) {
  Bucket bucket;
  for (const Token token : tokens) {
    if (SubmittedPtr pending = Take(token))
      bucket.push_back(std::move(pending));
  }
  return bucket;
}

void Executor::ForgetOperations() {
  by_token_.clear();
  free_tokens_.clear();
}

uint32_t Executor::Stage(const Decision& decision) {
  if (decision.kind != Decision::Kind::kBucket) return 0;
  try {
    staged_.clear();
    staged_.reserve(decision.tensors.size());
    for (const Decision::Tensor& tensor : decision.tensors) {
      SubmittedPtr pending = tensor.token.has_value()
                                 ? Take(*tensor.token)
                                 : MakeNeutralOperation(*tensor.request);
      if (pending != nullptr) staged_.push_back(std::move(pending));
    }
    return 0;
  } catch (const std::exception&) {  // no memory
    // If this rank has not joined, the others may have counted it as arrived.
    if (decision.tensors.front().token.has_value()) throw;
    return kGateError;
  }
}

absl::Status Executor::Execute(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::kBucket:
      return RunBucket(decision);
    case Decision::Kind::kFailure:
      operations_.Complete(TakeAll(decision.failed),
                           absl::InvalidArgumentError(decision.message),
                           {.next_step = decision.next_step});
      return absl::OkStatus();
    case Decision::Kind::kAddProcessSet:
      return AddProcessSet(decision);
    case Decision::Kind::kRemoveProcessSet:
      RemoveProcessSet(decision);
      return absl::OkStatus();
    case Decision::Kind::kAllJoined:
      CompleteRequested(decision, {.value = decision.last_joined});
      return absl::OkStatus();
    case Decision::Kind::kDeparture:
    case Decision::Kind::kBroken:
    case Decision::Kind::kShutdown:
      break;
  }
  return absl::InternalError(
      absl::StrCat("decision ", decision.number, " is not about operations"));
}

void Executor::CompleteRequested(const Decision& decision,
                                 const Outcome& outcome) {
  if (!decision.token.has_value()) return;
  if (const SubmittedPtr pending = Take(*decision.token)) {
    operations_.Complete({pending}, absl::OkStatus(), outcome);
  }
}

// ---- Process sets.

absl::Status Executor::AddProcessSet(const Decision& decision) {
  const ProcessSetId id = decision.process_set;
  if (absl::c_linear_search(decision.members, world_.rank())) {
    const Watched watched(watchdog_,
                          {.what = absl::StrCat("making process set ", id)});
    HVDLITE_ASSIGN_OR_RETURN(
        std::unique_ptr<collective::Communicator> communicator,
        world_.CreateSubgroup(decision.members, static_cast<int>(id % kTags)));
    collective::Communicator* const raw = communicator.get();
    sets_[id] = {raw, decision.members, std::move(communicator)};
    operations_.AddProcessSet(id, decision.members);
  }
  CompleteRequested(decision, {.value = id});
  return absl::OkStatus();
}

void Executor::RemoveProcessSet(const Decision& decision) {
  Bucket failed = TakeAll(decision.failed);
  for (SubmittedPtr& queued :
       operations_.RemoveProcessSet(decision.process_set)) {
    failed.push_back(std::move(queued));
  }
  {
    const Watched watched(
        watchdog_,
        {.what = absl::StrCat("ending process set ", decision.process_set)});
    sets_.erase(decision.process_set);
  }
  operations_.Complete(failed, absl::InvalidArgumentError(decision.message));
  CompleteRequested(decision, {});
}

void Executor::Abandon() {
  bool uses_memory = false;
  for (auto& [id, set] : sets_) {
    uses_memory = uses_memory || set.communicator->uses_memory();
    (void)set.owned.release();
  }
  if (uses_memory) buffer_.Abandon();
}

// ---- Buckets.

absl::Status Executor::RunBucket(const Decision& decision) {
  Bucket bucket = std::exchange(staged_, {});
  if ((decision.gate_flags & kGateError) != 0) {
    // If preparing has failed, the bucket lacks some of this rank's operations.
    for (const Decision::Tensor& tensor : decision.tensors) {
      SubmittedPtr left =
          tensor.token.has_value() ? Take(*tensor.token) : nullptr;
      if (left != nullptr) bucket.push_back(std::move(left));
    }
    operations_.Complete(
        bucket, absl::ResourceExhaustedError(
                    "a rank that has joined has no memory left to take part in "
                    "it; nothing was reduced, and the world is healthy"));
  } else if (!bucket.empty()) {
    BucketTrace trace(operations_.recorder(), config_.timeline_chunks,
                      world_.name(),
                      decision.arrived_ns.value_or(clock_.NowNanos()));
    trace.OnGatePassed(clock_.NowNanos());
    operations_.RecordInFlight();
    HVDLITE_RETURN_IF_ERROR(Run(decision, bucket, trace));
    trace.Record(decision, bucket, clock_.NowNanos());
    operations_.Complete(bucket, absl::OkStatus());
    operations_.RecordInFlight();
  }
  operations_.Complete(TakeAll(decision.absent), absl::OkStatus(),
                       {.absent_everywhere = true});
  // The next bucket reuses this memory.
  bucket.clear();
  staged_ = std::move(bucket);
  return absl::OkStatus();
}

absl::Status Executor::Run(const Decision& decision, const Bucket& bucket,
                           BucketTrace& trace) {
  const auto found = sets_.find(decision.process_set);
  if (found == sets_.end()) {
    return absl::InternalError(absl::StrCat(
        "cannot reduce a bucket of process set ", decision.process_set,
        ": this rank has no communicator for the set"));
  }
  const ProcessSet& set = found->second;
  collective::Communicator& communicator = *set.communicator;
  Describe(bucket, description_);
  // Only one rank reports a slow call.
  const Watched watched(
      watchdog_, {.what = description_,
                  .bytes = communicator.rank() == 0 ? BytesIn(bucket) : 0,
                  .chunk_bytes = static_cast<int64_t>(buffer_.bytes().size())});
  BucketProgress done = {.call_bytes = BytesIn(bucket)};
  communicator.SetSpin(spin_);
  const collective::FusionHooks hooks = {
      .on_phase =
          [&](collective::FusionPhase phase, int64_t chunk, int64_t start_ns,
              int64_t end_ns) {
            trace.OnPhase(phase, chunk, start_ns, end_ns);
          },
      .on_algorithm =
          [&](absl::string_view algorithm) { trace.OnAlgorithm(algorithm); },
      .on_progress = [&done](double share) { done.share = share; },
      .between_chunks =
          [this, &done] {  // fits into std::function without allocation
            watchdog_.Feed(done.moved());
            return serve_();
          },
      .while_waiting = serve_};
  const std::vector<int>& members = set.members;
  const int root = bucket.front()->operation.request.root_rank;
  return RunCollective(
      bucket,
      {.resources = {communicator, buffer_, clock_},
       .hooks = hooks,
       .root = members.empty() ? root
                               : static_cast<int>(absl::c_find(members, root) -
                                                  members.begin()),
       .divisor = config_.join_average_over_world ? communicator.size()
                                                  : decision.participants},
      done);
}

}  // namespace hvdlite::negotiation
