// The examples of the documentation that are whole programs, or that begin and
// end a world. "guide_programs NAME" runs one; guide_programs_test.py runs all
// and checks their output. See guide_collectives.cc for "[guide]" and "[end]".
#include <hvdlite/hvdlite.h>
#include <hvdlite/mpi.h>
#include <mpi.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/docs/guide_points.h"

namespace plain {

// [guide]
int main() {
  const auto data = Points().map(torch::data::transforms::Stack<>());
  torch::nn::Sequential model(torch::nn::Linear(2, 16), torch::nn::ReLU(),
                              torch::nn::Linear(16, 1));
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.02);
  for (int epoch = 0; epoch < 5; ++epoch) {
    const torch::data::samplers::RandomSampler sampler(1000);
    auto loader = torch::data::make_data_loader(data, sampler, /*batch=*/20);
    torch::Tensor loss;
    for (const torch::data::Example<>& batch : *loader) {
      optimizer.zero_grad();
      loss = torch::mse_loss(model->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
    }
    std::cout << "epoch " << epoch << " loss " << loss.item<float>() << "\n";
  }
  torch::save(model, "model.pt");
  return 0;
}
// [end]

}  // namespace plain

namespace three_lines {

// Its steps are those of any LibTorch trainer.
int main() {
  torch::nn::Sequential model(torch::nn::Linear(2, 1));
  // [guide]
  hvdlite::init();                                        // 1
  hvdlite::broadcast_parameters(model, /*root_rank=*/0);  // 2
  hvdlite::DistributedOptimizer optimizer(                // 3
      std::make_unique<torch::optim::SGD>(model->parameters(), /*lr=*/0.1),
      model->named_parameters());
  // [end]
  // The gradient of each weight is the number of the rank plus one.
  optimizer.zero_grad();
  const torch::Tensor inputs = torch::full({1, 2}, hvdlite::rank() + 1.0f);
  const torch::Tensor before = model->parameters()[0].detach().clone();
  model->forward(inputs).sum().backward();
  optimizer.step();
  const torch::Tensor moved = before - model->parameters()[0].detach();
  std::cout << "moved by " << moved[0][0].item<float>() << "\n";
  hvdlite::shutdown();
  return 0;
}

}  // namespace three_lines

namespace distributed {

// [guide]
int main() {
  hvdlite::init();  // 1
  const auto data = Points().map(torch::data::transforms::Stack<>());
  torch::nn::Sequential model(torch::nn::Linear(2, 16), torch::nn::ReLU(),
                              torch::nn::Linear(16, 1));
  hvdlite::broadcast_parameters(model, /*root_rank=*/0);  // 2
  hvdlite::DistributedOptimizer optimizer(                // 3
      std::make_unique<torch::optim::SGD>(model->parameters(),
                                          /*lr=*/0.02 * hvdlite::size()),  // 4
      model->named_parameters());
  for (int epoch = 0; epoch < 5; ++epoch) {
    torch::data::samplers::DistributedRandomSampler sampler(  // 5
        1000, hvdlite::size(), hvdlite::rank());
    sampler.set_epoch(epoch);  // 6
    auto loader = torch::data::make_data_loader(data, sampler, /*batch=*/20);
    torch::Tensor loss;
    for (const torch::data::Example<>& batch : *loader) {
      optimizer.zero_grad();
      loss = torch::mse_loss(model->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
    }
    loss = hvdlite::allreduce(loss.detach());  // 7
    if (hvdlite::rank() == 0)                  // 8
      std::cout << "epoch " << epoch << " loss " << loss.item<float>() << "\n";
  }
  if (hvdlite::rank() == 0) torch::save(model, "model.pt");  // 9
  hvdlite::shutdown();                                       // 10
  return 0;
}
// [end]

}  // namespace distributed

namespace from_horovod {

// [guide]
int main() {
  hvdlite::init();
  auto data = Points().map(torch::data::transforms::Stack<>());
  hvdlite::DistributedSampler sampler(1000, /*batch=*/20, /*seed=*/1);
  torch::nn::Sequential model(torch::nn::Linear(2, 16), torch::nn::ReLU(),
                              torch::nn::Linear(16, 1));
  hvdlite::broadcast_parameters(model, /*root_rank=*/0);  // buffers, too
  hvdlite::DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(
          model->parameters(),
          torch::optim::SGDOptions(0.02 * hvdlite::size()).momentum(0.5)),
      model->named_parameters(),
      hvdlite::DistributedOptimizerOptions().compression(
          hvdlite::Compression::FP16));
  hvdlite::broadcast_optimizer_state(optimizer, /*root_rank=*/0);
  for (int epoch = 0; epoch < 5; ++epoch) {
    sampler.set_epoch(epoch);
    torch::Tensor loss;
    while (const auto indices = sampler.next()) {
      const torch::data::Example<> batch = data.get_batch(*indices);
      optimizer.zero_grad();
      loss = torch::mse_loss(model->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
    }
    const torch::Tensor mean = hvdlite::allreduce(
        loss.detach(), hvdlite::AllreduceOptions().name("loss"));
    if (hvdlite::rank() == 0) {
      std::cout << "epoch " << epoch << " loss " << mean.item<float>() << "\n";
    }
  }
  if (hvdlite::rank() == 0) {
    hvdlite::save_checkpoint("model.pt", *model, optimizer.inner());
  }
  hvdlite::shutdown();
  return 0;
}
// [end]

}  // namespace from_horovod

namespace errors {

void Train() {
  torch::nn::Linear model(2, 1);
  hvdlite::DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
      model->named_parameters());
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    model->forward(torch::ones({4, 2})).sum().backward();
    if (step == 3 && hvdlite::rank() == hvdlite::size() - 1) {
      throw std::runtime_error("cannot read the images of shard 3");
    }
    optimizer.step();
  }
}

// [guide]
int main() {
  try {
    hvdlite::init();
    Train();  // everything that has tensors, DistributedOptimizer included
    hvdlite::shutdown();
    return 0;
  } catch (const c10::Error& error) {  // WorldBroken included
    std::cerr << error.what_without_backtrace() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
  }
  return 1;  // without shutdown(): the other ranks fail rather than wait
}
// [end]

}  // namespace errors

namespace configured {

int main() {
  // [guide]
  hvdlite::Config config = hvdlite::Config::from_env();
  config.stall_warning_seconds = 10;
  config.log_level = "info";
  hvdlite::init(config);
  if (hvdlite::rank() == 0) std::cout << config.describe();
  // [end]
  hvdlite::shutdown();
  return 0;
}

}  // namespace configured

namespace elastic {

int main() {
  hvdlite::init();
  auto data = Points().map(torch::data::transforms::Stack<>());
  torch::nn::Sequential model(torch::nn::Linear(2, 16), torch::nn::ReLU(),
                              torch::nn::Linear(16, 1));
  hvdlite::DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(model->parameters(), /*lr=*/0.02),
      model->named_parameters());
  // [guide]
  hvdlite::DistributedSampler sampler(1000, /*batch=*/10, /*seed=*/1);
  double loss = 0;

  hvdlite::elastic::State state(
      hvdlite::elastic::StateOptions().path("run.pt").save_every_seconds(60));
  state.model(*model).optimizer(optimizer).sampler(sampler);
  state.value("loss", loss);
  const int exit_code = hvdlite::elastic::run(state, [&] {
    for (int64_t epoch = sampler.epoch(); epoch < 5; ++epoch) {
      sampler.set_epoch(epoch);
      while (const auto indices = sampler.next()) {
        optimizer.zero_grad();
        if (!indices->empty()) {
          const torch::data::Example<> batch = data.get_batch(*indices);
          const torch::Tensor mean =
              torch::mse_loss(model->forward(batch.data), batch.target);
          // The ranks' parts may differ by a sample.
          const double weight =
              1.0 * indices->size() * hvdlite::size() / sampler.taken();
          (mean * weight).backward();
          loss = mean.item<double>();
        }
        optimizer.step();
        state.commit();
        if (state.should_stop()) return;
      }
      if (hvdlite::rank() == 0) {
        std::cout << "epoch " << epoch << " loss " << loss << "\n";
      }
    }
  });
  hvdlite::shutdown();
  // [end]
  return exit_code;
}

}  // namespace elastic

namespace owns_mpi {

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  hvdlite::init();  // throws if `provided` is not enough
  hvdlite::barrier();
  hvdlite::shutdown();
  hvdlite::init();  // again, since MPI is still there
  std::printf("rank %d of %d\n", hvdlite::rank(), hvdlite::size());
  hvdlite::shutdown();
  MPI_Finalize();  // after shutdown()
  return 0;
}

}  // namespace owns_mpi

namespace some_processes {

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int process = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  // [guide]
  const bool trains = process != 0;  // process 0 does something else
  MPI_Comm trainers = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, trains ? 0 : MPI_UNDEFINED, process,
                 &trainers);
  if (trains) {
    hvdlite::init(trainers);
    std::cout << "process " << process << " is rank " << hvdlite::rank()
              << " of " << hvdlite::size() << "\n";
    hvdlite::shutdown();
    MPI_Comm_free(&trainers);
  }
  // [end]
  MPI_Finalize();
  return 0;
}

}  // namespace some_processes

namespace stalls {

// Rank 0 waits for an operation that the other ranks do not submit.
int main() {
  hvdlite::Config config = hvdlite::Config::from_env();
  config.stall_warning_seconds = 0.2;
  config.stall_failure_seconds = 0.6;
  hvdlite::init(config);
  hvdlite::barrier();
  try {
    if (hvdlite::rank() == 0) {  // wrong: the other ranks never come here
      hvdlite::allreduce(torch::ones({2}),
                         hvdlite::AllreduceOptions().name("validation"));
    }
    hvdlite::barrier();
  } catch (const hvdlite::WorldBroken& error) {
    std::cerr << error.what_without_backtrace() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace stalls

int main(int argc, char** argv) {
  const std::map<std::string, std::function<int()>> programs = {
      {"plain", plain::main},
      {"three_lines", three_lines::main},
      {"distributed", distributed::main},
      {"from_horovod", from_horovod::main},
      {"errors", errors::main},
      {"configured", configured::main},
      {"elastic", elastic::main},
      {"owns_mpi", [&] { return owns_mpi::main(argc, argv); }},
      {"some_processes", [&] { return some_processes::main(argc, argv); }},
      {"stalls", stalls::main},
  };
  const auto program = programs.find(argc == 2 ? argv[1] : "");
  if (program == programs.end()) {
    std::fputs("usage: guide_programs NAME\n", stderr);
    return 2;
  }
  return program->second();
}
