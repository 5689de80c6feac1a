from glp_rapids.bench import main

main()
