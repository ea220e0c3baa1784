#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/machine.h"
#include "support/statistics.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/gather_facts.h"
#include "tools/doctor/checks/world_checks.h"

namespace hvdlite::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkFacts, latency_us, gb_per_second)

namespace {

constexpr size_t kSmallBytes = 8;
constexpr int kSmallExchanges = 100;
constexpr size_t kLargeBytes = size_t{1} << 20;
constexpr int kLargeExchanges = 5;
// A link beyond these limits is slow. The slack ignores differences that do not
// matter for a step.
constexpr double kLatencyFactor = 2;
constexpr double kLatencySlackUs = 5;
constexpr double kBandwidthShare = 0.5;
constexpr size_t kMostPairsNamed = 5;

struct Link {
  int a = 0;
  int b = 0;
  double latency_us = 0;
  double gb_per_second = 0;
  bool slow = false;
};

// The links of one host. If most of them are slow, the host is the cause.
struct HostCount {
  int links = 0;
  int slow = 0;
  std::vector<double> latency_us;
  std::vector<double> gb_per_second;
};

std::string Figures(double latency_us, double gb_per_second) {
  return absl::StrFormat("%.3g us, %.3g GB/s", latency_us, gb_per_second);
}

// Compares links of one kind, which should be equally fast.
void JudgeKind(std::vector<Link>& links, absl::string_view kind,
               absl::Span<const std::string> host_of_rank,
               std::vector<Finding>& findings) {
  if (links.empty()) return;
  std::vector<double> latencies;
  std::vector<double> bandwidths;
  for (const Link& link : links) {
    latencies.push_back(link.latency_us);
    bandwidths.push_back(link.gb_per_second);
  }
  const double latency = support::Median(latencies);
  const double bandwidth = support::Median(bandwidths);
  std::map<std::string, HostCount> hosts;
  for (Link& link : links) {
    link.slow = link.latency_us > kLatencyFactor * latency + kLatencySlackUs ||
                link.gb_per_second < kBandwidthShare * bandwidth;
    for (const std::string& host :
         std::set<std::string>{host_of_rank[link.a], host_of_rank[link.b]}) {
      HostCount& count = hosts[host];
      ++count.links;
      count.slow += link.slow ? 1 : 0;
      count.latency_us.push_back(link.latency_us);
      count.gb_per_second.push_back(link.gb_per_second);
    }
  }
  const auto to_blame = [&](const std::string& host) {
    const HostCount& count = hosts.at(host);
    return 2 * count.slow > count.links;
  };
  for (const auto& [host, count] : hosts) {
    if (!to_blame(host)) continue;
    findings.push_back(
        {.verdict = Verdict::kWarning,
         .seen = absl::StrFormat(
             "%s: %d of %d links of %s are slow (median %s; median of all: %s)",
             kind, count.slow, count.links, host,
             Figures(support::Median(count.latency_us),
                     support::Median(count.gb_per_second)),
             Figures(latency, bandwidth)),
         .remedy = absl::StrCat("check its network card and cable (ssh ", host,
                                " ethtool DEVICE; ibstat), or remove it "
                                "from the host list"),
         .ranks = RanksByHost(host_of_rank).at(host)});
  }
  size_t named = 0;
  for (const Link& link : links) {
    if (!link.slow || to_blame(host_of_rank[link.a]) ||
        to_blame(host_of_rank[link.b]) || ++named > kMostPairsNamed) {
      continue;
    }
    findings.push_back(
        {.verdict = Verdict::kWarning,
         .seen = absl::StrFormat(
             "%s: ranks %d (%s) and %d (%s) have a slow link (%s; median of "
             "all: %s)",
             kind, link.a, host_of_rank[link.a], link.b, host_of_rank[link.b],
             Figures(link.latency_us, link.gb_per_second),
             Figures(latency, bandwidth)),
         .remedy =
             "run hvdlite_doctor --check links again; if the link is "
             "still slow, look for other jobs or a bad cable on that path",
         .ranks = {link.a, link.b}});
  }
  const auto [lowest, highest] =
      std::minmax_element(latencies.begin(), latencies.end());
  const auto [least, most] =
      std::minmax_element(bandwidths.begin(), bandwidths.end());
  findings.push_back(
      {.seen = links.size() == 1
                   ? absl::StrFormat("%s: %s each way (1 pair)", kind,
                                     Figures(latency, bandwidth))
                   : absl::StrFormat(
                         "%s: median %s each way of %d pairs (%.3g to "
                         "%.3g us, %.3g to %.3g GB/s)",
                         kind, Figures(latency, bandwidth), links.size(),
                         *lowest, *highest, *least, *most),
       .ranks = RanksUpTo(host_of_rank.size())});
}

// The median time of one exchange in seconds.
absl::StatusOr<double> TimeExchanges(collective::Communicator& communicator,
                                     int peer, size_t bytes, int exchanges) {
  std::vector<std::byte> send(bytes);
  std::vector<std::byte> receive(bytes);
  std::vector<double> seconds;
  for (int i = 0; i <= exchanges; ++i) {
    const double start = support::WallSeconds();
    HVDLITE_RETURN_IF_ERROR(
        communicator.Exchange(peer, send, absl::MakeSpan(receive)));
    // The first exchange waits for the other rank and connects.
    if (i > 0) seconds.push_back(support::WallSeconds() - start);
  }
  return support::Median(seconds);
}

}  // namespace

int TournamentRounds(int size) {
  if (size < 2) return 0;
  return size % 2 == 0 ? size - 1 : size;
}

int PartnerInRound(int size, int rank, int round) {
  // All ranks except one, which stays, are on a circle of odd length. Two ranks
  // meet if their numbers add up to the round, modulo the circle. The rank that
  // would meet itself meets the one that stays.
  const int circle = TournamentRounds(size);
  const int stays = circle;  // does not exist if `size` is odd
  int partner = 0;
  if (rank == stays) {
    partner = static_cast<int>(static_cast<long long>(round) *
                               ((circle + 1) / 2) % circle);
  } else {
    partner = ((round - rank) % circle + circle) % circle;
    if (partner == rank) partner = stays;
  }
  return partner < size ? partner : -1;
}

std::vector<Finding> JudgeLinks(const std::vector<LinkFacts>& of_rank,
                                absl::Span<const std::string> host_of_rank) {
  std::vector<Link> within;
  std::vector<Link> between;
  const int size = static_cast<int>(of_rank.size());
  for (int a = 0; a < size; ++a) {
    for (int b = a + 1; b < size; ++b) {
      const Link link = {
          .a = a,
          .b = b,
          .latency_us =
              std::max(of_rank[a].latency_us[b], of_rank[b].latency_us[a]),
          .gb_per_second = std::min(of_rank[a].gb_per_second[b],
                                    of_rank[b].gb_per_second[a])};
      (host_of_rank[a] == host_of_rank[b] ? within : between).push_back(link);
    }
  }
  std::vector<Finding> findings;
  JudgeKind(within, "links within hosts", host_of_rank, findings);
  JudgeKind(between, "links between hosts", host_of_rank, findings);
  if (findings.empty()) {
    findings.push_back(
        {.seen = "there is only one rank, so there are no links"});
  }
  return findings;
}

absl::StatusOr<Findings> RunLinks(Session& session) {
  const int rank = session.topology.rank;
  const int size = session.topology.size;
  LinkFacts mine = {.latency_us = std::vector<double>(size),
                    .gb_per_second = std::vector<double>(size)};
  for (int round = 0; round < TournamentRounds(size); ++round) {
    HVDLITE_RETURN_IF_ERROR(session.communicator.Barrier());
    const int peer = PartnerInRound(size, rank, round);
    if (peer < 0) continue;
    HVDLITE_ASSIGN_OR_RETURN(const double small,
                             TimeExchanges(session.communicator, peer,
                                           kSmallBytes, kSmallExchanges));
    HVDLITE_ASSIGN_OR_RETURN(const double large,
                             TimeExchanges(session.communicator, peer,
                                           kLargeBytes, kLargeExchanges));
    mine.latency_us[peer] = 1e6 * small;
    mine.gb_per_second[peer] = 1e-9 * kLargeBytes / large;
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<LinkFacts> facts,
                           GatherFacts<LinkFacts>(session, mine));
  if (rank != 0) return Findings();
  return JudgeLinks(facts, session.topology.host_of_rank);
}

}  // namespace hvdlite::doctor
