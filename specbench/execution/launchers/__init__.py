"""Where launches run: `local`, the GPUs of this machine; `slurm`, jobs of a cluster. Either runs `trial.LaunchRun`, so that
what is stored of a launch does not depend on it."""
