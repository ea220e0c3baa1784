// An elastic training for elastic_restart_test.py, which kills it.
//
//   elastic_program FILE [DEADLY_STEP [DEADLY_RANK [killed|throws]]]
//
// Counts how often each sample was trained on. A restart resets the counts like
// all other state. At the end rank 0 prints them and a digest of the weights.
// DEADLY_RANK, by default the last rank, is killed or throws an exception in
// its DEADLY_STEP-th step of this start. FILE "": commits are not written to a
// file.
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int64_t kSamples = 101;
constexpr int64_t kEpochs = 3;

int Train(const char* file, int64_t deadly_step, int deadly_rank,
          const std::string& end) {
  torch::manual_seed(7);
  const torch::Tensor inputs = torch::randn({kSamples, 4});
  const torch::Tensor targets = inputs.sum(/*dim=*/1, /*keepdim=*/true).tanh();
  torch::manual_seed(static_cast<uint64_t>(hvdlite::rank()));
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::Tanh(),
                              torch::nn::Linear(8, 1));
  hvdlite::DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(
          model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)),
      model->named_parameters());
  hvdlite::DistributedSampler sampler(kSamples, /*batch_size=*/4, /*seed=*/1);
  torch::Tensor counts = torch::zeros({kSamples}, torch::kInt64);
  hvdlite::elastic::State state(hvdlite::elastic::StateOptions().path(file));
  state.model(*model).optimizer(optimizer).sampler(sampler).value("counts",
                                                                  counts);
  int64_t steps = 0;
  const int exit_code = hvdlite::elastic::run(state, [&] {
    for (int64_t epoch = sampler.epoch(); epoch < kEpochs; ++epoch) {
      sampler.set_epoch(epoch);
      while (const auto indices = sampler.next()) {
        if (++steps == deadly_step) {
          state.flush();  // so that the test knows which commits exist
          if (hvdlite::rank() == deadly_rank) {
            if (end == "throws") throw std::runtime_error("no disk");
            std::raise(SIGKILL);
          }
        }
        torch::Tensor own = torch::zeros({kSamples}, torch::kInt64);
        optimizer.zero_grad();
        if (!indices->empty()) {
          const torch::Tensor batch = torch::tensor(
              std::vector<int64_t>(indices->begin(), indices->end()));
          own.index_fill_(0, batch, 1);
          const double weight =
              static_cast<double>(indices->size() * hvdlite::size()) /
              static_cast<double>(sampler.taken());
          (weight *
           torch::mse_loss(model->forward(inputs.index_select(0, batch)),
                           targets.index_select(0, batch)))
              .backward();
        }
        optimizer.step();
        counts += hvdlite::allreduce(own, hvdlite::AllreduceOptions()
                                              .op(hvdlite::ReduceOp::Sum)
                                              .name("counts"));
        state.commit();
        if (state.should_stop()) return;
      }
    }
  });
  if (exit_code == 0 && hvdlite::rank() == 0) {
    double sum = 0;
    for (const torch::Tensor& parameter : model->parameters()) {
      sum += parameter.sum().item<double>();
    }
    std::printf("samples counted %lld to %lld times\nweights %a\nsteps %lld\n",
                static_cast<long long>(counts.min().item<int64_t>()),
                static_cast<long long>(counts.max().item<int64_t>()), sum,
                static_cast<long long>(steps));
    std::fflush(stdout);
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  hvdlite::init();
  const int exit_code =
      Train(argv[1], argc > 2 ? std::atoll(argv[2]) : 0,
            argc > 3 ? std::atoi(argv[3]) : hvdlite::size() - 1,
            argc > 4 ? argv[4] : "killed");
  hvdlite::shutdown();
  return exit_code;
}
